// A model as the engine reads it: matrices and vectors that lie in the packed file, which stays mapped.
#pragma once

#include "kernels.hpp"

#include <map>
#include <string>
#include <vector>

namespace headway {

// Inputs of a matrix in 8 bits at most: its sums, of products up to 255 x 127, are whole numbers of 32 bits.
constexpr int MOST_INT8_INPUTS = 1 << 16;

enum class Positions { none, sinusoidal, learned, rope, alibi, words };

struct Config {
    int d_model = 0;
    int d_ff = 0;
    Heads heads;
    int encoder_layers = 0;
    int decoder_layers = 0;
    int source_vocab = 0;
    int target_vocab = 0;
    int max_positions = 0; // rows of the learned tables
    Positions positions = Positions::sinusoidal;
    bool pre_norm = false;
    bool centred_norm = true; // layer normalisation; else that of the root mean square
    bool gated = false;
    bool cross_words = false; // cross-attention's scores lose by distance in words
    Activation activation = Activation::relu;
    float epsilon = 1e-6F;
    float encoder_residual = 1.0F; // DeepNorm's alpha
    float decoder_residual = 1.0F;
    float embedding_scale = 1.0F;

    bool counts_words() const { return positions == Positions::words || cross_words; }
    int query_size() const { return heads.queries * heads.d_k; }
    int key_size() const { return heads.keys * heads.d_k; }
    int value_size() const { return heads.keys * heads.d_v; }
    int mixed_size() const { return heads.queries * heads.d_v; }
};

// The arrays of a packed file by name. Each is asked for with its exact size: a file that lies is refused, never read
// beyond its end.
struct Array {
    const void *data = nullptr;
    size_t bytes = 0;
};
using Arrays = std::map<std::string, Array>;

struct Norm {
    const float *gain = nullptr;
    const float *bias = nullptr;
};

// Queries, keys and values come out of one product, each part padded to whole blocks.
struct SelfAttention {
    Matrix project;
    Matrix output;
    Norm norm;
};

struct CrossAttention {
    Matrix query;
    Matrix memory; // keys, then values, of the encoder's vectors
    Matrix output;
    Norm norm;
};

struct FeedForward {
    Matrix inner; // with a gate: its outputs first, padded to whole blocks
    Matrix outer;
    Norm norm;
};

struct EncoderLayer {
    SelfAttention attention;
    FeedForward feed_forward;
};

struct DecoderLayer {
    SelfAttention self_attention;
    CrossAttention cross_attention;
    FeedForward feed_forward;
};

struct Model {
    // Throws std::invalid_argument naming the array that is missing or has another size.
    Model(const Config &config, const Arrays &arrays);

    Config config;
    Matrix source_embedding;
    Matrix target_embedding;
    Matrix output; // the vocabulary's
    const float *source_positions = nullptr;
    const float *target_positions = nullptr;
    const uint8_t *source_starts = nullptr; // where words are counted: whether each token begins one
    const uint8_t *target_starts = nullptr;
    std::vector<EncoderLayer> encoder;
    std::vector<DecoderLayer> decoder;
    Norm encoder_norm; // with pre-norm alone
    Norm decoder_norm;
    std::vector<float> slopes;       // ALiBi's, a head
    std::vector<float> cross_slopes; // what a score of cross-attention loses for a word of distance, a head

    // Whether keys and values are kept in bfloat16.
    bool short_caches() const { return output.is_int8(); }
};

// ``token``'s vector, as the matrix has it.
void look_up(const Matrix &matrix, int token, float *out);

} // namespace headway
