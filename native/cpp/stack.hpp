// What encoder and decoder share: rows of vectors through self-attention's products, feed-forward network and residuals.
#pragma once

#include "arithmetic.hpp"

namespace headway {

// Sines and cosines in turn, a row a position: PE(pos, 2i) = sin(pos / 10000^(2i / size)), PE(pos, 2i + 1) its cosine.
class Waves {
  public:
    explicit Waves(int size) : size_(size) {}
    const float *at(int position);

  private:
    int size_;
    std::vector<float> table_;
};

// Where the parts of a product begin that gives queries, keys and values.
struct Parts {
    explicit Parts(const Config &config)
        : key(padded(static_cast<size_t>(config.query_size()))),
          value(key + padded(static_cast<size_t>(config.key_size()))),
          end(value + padded(static_cast<size_t>(config.value_size()))) {}
    size_t key;
    size_t value;
    size_t end;
};

class Stack {
  public:
    Stack(const Model &model, const Kernels &kernels, Team &team, bool is_encoder);

    // Row ``row`` of x: the vector of a token at a position, as the first layer reads it. ``word``: which word it is at,
    // where positions count words.
    void embed(size_t row, int token, int position, int word);
    // Which word a token is at that comes after one at ``word``; 0 where words are not counted, and before the first.
    int word_after(int word, int token) const;
    void resize(size_t count);

    // Queries, keys and values of all rows, turned to their positions where the scheme turns; in ``projected``.
    void project(const SelfAttention &attention, const int *position);
    // x after a sub-layer whose last product is of ``mixed`` (mixed rows x matrix).
    void join(const Matrix &matrix, const Norm &norm);
    void feed_forward(const FeedForward &feed_forward);
    // What the sub-layer of this norm reads: x, with pre-norm its norm.
    const FloatTable &read(const Norm &norm);
    // After the last layer.
    void close();

    FloatTable x;
    FloatTable projected;
    FloatTable mixed;
    Arithmetic arithmetic;

  private:
    void add(const Matrix &matrix, const FloatTable &from, const Norm &norm);
    void turn(float *vectors, int count, int position);

    const Model &model_;
    const Config &config_;
    bool is_encoder_;
    float residual_;
    Waves embedding_waves_;
    Waves word_waves_;
    Waves turning_waves_;
    FloatTable normed_;
    FloatTable inner_;
    FloatTable gated_;
};

} // namespace headway
