// A lexical shortlist: for each source token the target tokens that it may be translated with, so that a sentence's
// output is sought among some hundreds of tokens and not in the whole vocabulary.
#pragma once

#include "beam.hpp"
#include "model.hpp"
#include "rows.hpp"

#include <memory>

namespace headway {

// The tokens that one sentence may have, in rising order, and their rows of the vocabulary's matrix, packed as all
// matrices are.
class Selection {
  public:
    Selection(const Matrix &whole, std::vector<int32_t> tokens);
    Selection(const Selection &) = delete; // the matrix points into what this holds
    Selection &operator=(const Selection &) = delete;

    const Matrix &matrix() const { return matrix_; }
    const std::vector<int32_t> &tokens() const { return tokens_; }

  private:
    std::vector<int32_t> tokens_;
    Matrix matrix_;
    Numbers<uint8_t> int8_;
    Numbers<float> float_;
    Numbers<float> scale_;
    Numbers<float> bias_;
};

class Shortlist {
  public:
    // The tokens of source token s are tokens[offsets[s]] up to tokens[offsets[s + 1]]; ``always`` are those of every
    // sentence. Throws std::invalid_argument for offsets that do not fit the tokens, or tokens outside the vocabulary.
    Shortlist(std::vector<int64_t> offsets, std::vector<int32_t> tokens, std::vector<int32_t> always, int target_vocab);

    int source_vocab() const { return static_cast<int>(offsets_.size()) - 1; }
    int target_vocab() const { return target_vocab_; }

    // In rising order: what ``always`` and the source's tokens allow, what the output must begin with, and EOS.
    std::vector<int32_t> allowed(const Request &request) const;
    // Those tokens with their rows of the vocabulary's matrix; null, the whole vocabulary, where they are more than MOST.
    std::unique_ptr<Selection> select(const Request &request, const Matrix &whole) const;

    static constexpr size_t MOST = 8192; // beyond, rows copied for each sentence save nothing, and fill the memory

  private:
    std::vector<int64_t> offsets_;
    std::vector<int32_t> tokens_;
    std::vector<int32_t> always_;
    int target_vocab_;
};

} // namespace headway
