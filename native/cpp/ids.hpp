// Token ids, and those that are no text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

using std::size_t;

namespace headway {

using Ids = std::vector<int>;

constexpr int PAD = 0;
constexpr int UNK = 1;
constexpr int BOS = 2;
constexpr int EOS = 3;

} // namespace headway
