// Sources to what the decoder looks at. Tokens of all sentences of a group are rows of one matrix, without padding.
#pragma once

#include "beam.hpp"
#include "cache.hpp"
#include "stack.hpp"

#include <vector>

namespace headway {

// Keys and values of one source for every decoder layer. Keys: (head x d_k x padded length); values: (length x heads x
// d_v).
struct Memory {
    int length = 0;
    std::vector<int> word; // that each token is at, where words are counted
    std::vector<Cache> key;
    std::vector<Cache> value;
};

class Encoder {
  public:
    Encoder(const Model &model, const Kernels &kernels, Team &team);
    std::vector<Memory> encode(const std::vector<const Ids *> &sources);

  private:
    void attend(const std::vector<const Ids *> &sources);
    void attend_one(size_t first, size_t length, int member);
    void remember(const std::vector<const Ids *> &sources, std::vector<Memory> &memories);

    const Model &model_;
    Stack stack_;
    FloatTable memory_;
    std::vector<int> position_;
    Numbers<float> turned_;
    std::vector<Numbers<float>> key_;     // of each member of the team
    std::vector<Numbers<float>> weights_; // the same
};

// Keys of one sentence, a row a position, to (number x padded length).
void turn_keys(const float *rows, size_t stride, size_t length, size_t size, float *out);

} // namespace headway
