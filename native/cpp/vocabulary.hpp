// From the decoder's vectors to the best next tokens. Logits are made for a part of the vocabulary at a time and looked
// at while they are in the cache: their log-sum and the best of them come out of one pass, and no row of them is kept.
#pragma once

#include "arithmetic.hpp"
#include "shortlist.hpp"

namespace headway {

// What is asked of a row: the log-probability of one token (``only``), or the ``wanted`` best of those that the beam
// allows. ``selection``: the tokens there are for this row; null, the whole vocabulary.
struct Ask {
    const Beam *beam = nullptr;
    int row = 0;
    int only = -1;
    int wanted = 0;
    const Selection *selection = nullptr;
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

    // Neighbouring rows that choose among the same tokens. Row ``first_row`` + i has the places ``first_place`` +
    // i x chunks, and so on, in what is kept of each row and chunk.
    struct Part {
        const Matrix *matrix;
        const int32_t *tokens; // null: all there are
        int first_row;
        int count;
        size_t first_place;
        int chunks;

        size_t place(int row, int chunk) const {
            return first_place + static_cast<size_t>(row - first_row) * static_cast<size_t>(chunks) + static_cast<size_t>(chunk);
        }
        int token(int output) const { return tokens == nullptr ? output : tokens[output]; }
        int output(int token) const; // -1: not among its tokens
    };
    struct Piece { // of the work: a chunk of the tokens of a part
        int part;
        int chunk;
    };

    void divide(const std::vector<Ask> &asks);
    void look(Member &member, const std::vector<Ask> &asks, Piece piece);
    void look(Member &member, const std::vector<Ask> &asks, const Part &part, int first_row, int count, int chunk);
    void keep(Member &member, const Part &part, size_t row, const Ask &ask, const float *logits, int first_output, int size);
    void collect(const Part &part, int row, const Ask &ask, std::vector<Next> &nexts) const;

    const Matrix &output_;
    Arithmetic &arithmetic_;
    std::vector<Member> members_;
    std::vector<Part> parts_;
    std::vector<Piece> pieces_;
    std::vector<float> peak_; // of each row and chunk
    std::vector<float> sum_;
    std::vector<float> only_; // the logit of each row's only token
};

} // namespace headway
