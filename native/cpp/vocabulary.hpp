// From the decoder's vectors to the best next tokens. Logits are made for a part of the vocabulary at a time and looked
// at while they are in the cache: their log-sum and the best of them come out of one pass, and no row of them is kept.
#pragma once

#include "arithmetic.hpp"
#include "beam.hpp"

namespace headway {

// What is asked of a row: the log-probability of one token (``only``), or the ``wanted`` best of those that the beam
// allows.
struct Ask {
    const Beam *beam = nullptr;
    int row = 0;
    int only = -1;
    int wanted = 0;
};

class Vocabulary {
  public:
    Vocabulary(const Matrix &output, Arithmetic &arithmetic);

    // One list a row: best first, among equals the lower token; empty where the row holds what is no number.
    void best(const FloatRows &rows, const std::vector<Ask> &asks, std::vector<std::vector<Next>> &nexts);

  private:
    struct Logit {
        float value;
        int token;
    };
    // What one member of the team has found so far in its part of the vocabulary.
    struct Member {
        std::vector<std::vector<Logit>> best; // of each row, sorted
        Numbers<float> logits;
        std::vector<int32_t> places;
    };

    void look(Member &member, const std::vector<Ask> &asks, int first_row, int count, int chunk);
    void keep(Member &member, size_t row, const Ask &ask, const float *logits, int first_token, int first, int size);

    const Matrix &output_;
    Arithmetic &arithmetic_;
    int chunks_;
    std::vector<Member> members_;
    std::vector<float> peak_; // of each row and chunk
    std::vector<float> sum_;
    std::vector<float> only_; // the logit of each row's only token
};

} // namespace headway
