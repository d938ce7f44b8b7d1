// What the engine asks of a processor, and the forms of its operands. One table of functions for each instruction set;
// the best one that the processor has is chosen when the engine starts.
//
// Matrices are packed in blocks of 16 outputs. Vectors of floats are followed by zeros up to the next multiple of 16, so
// whole blocks can be read and written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headway {

constexpr int BLOCK = 16;        // outputs of a block
constexpr int GROUP = 4;         // 8-bit numbers multiplied and added by one instruction
constexpr int CHUNK_BLOCKS = 32; // of the vocabulary, whose logits are looked at while they are still in the cache
constexpr int CHUNK = CHUNK_BLOCKS * BLOCK;

constexpr size_t padded(size_t count, size_t multiple = BLOCK) { return (count + multiple - 1) / multiple * multiple; }

// A matrix of weights (outputs x inputs). float32: [block][input][16]. 8 bits: [block][group][16][4], each weight + 128,
// the weight itself times its output's scale being what it stands for.
struct Matrix {
    const void *data = nullptr;
    const float *scale = nullptr; // of each output; null: float32
    const float *bias = nullptr;  // null: none
    int outputs = 0;
    int inputs = 0;

    int blocks() const { return static_cast<int>(padded(outputs) / BLOCK); }
    int groups() const { return static_cast<int>(padded(inputs, GROUP) / GROUP); }
    bool is_int8() const { return scale != nullptr; }
};

// Rows of activations in 8 bits: row r stands for scale[r] x data; sum[r] is the sum of its numbers. Rows are followed
// by zeros.
struct Int8Rows {
    const int8_t *data = nullptr;
    const float *scale = nullptr;
    const int32_t *sum = nullptr;
    size_t stride = 0;
    int count = 0;
};

struct FloatRows {
    const float *data = nullptr;
    size_t stride = 0;
    int count = 0;
};

// Where a product goes: out = relu(product + bias) + residual_weight x residual. ``residual`` may be ``out`` itself.
struct Sink {
    float *out = nullptr;
    size_t stride = 0;
    const float *residual = nullptr;
    size_t residual_stride = 0;
    float residual_weight = 1.0F;
    bool relu = false;
    int first_block = 0; // out begins with the outputs of this block
};

enum class Activation { relu, gelu, silu };

// Keys and values of what a query may look at, float32 or (short) bfloat16. Vector i of the keys stands at key +
// offset[i] x key_stride.
struct Past {
    const void *key = nullptr;
    const void *value = nullptr;
    bool is_short = false;
    size_t key_stride = 0;
    size_t value_stride = 0;
    const int32_t *offset = nullptr;
    int count = 0;
};

// The same of one source: keys (head x d_k x padded length), values (length x heads x d_v).
struct Source {
    const void *key = nullptr;
    const void *value = nullptr;
    bool is_short = false;
    int length = 0;
};

// What a score loses: slope (one a head) x distance. Query i stands at centre + i and vector j at j; or, with both, at
// query[i] and key[j]. Without slopes nothing is lost.
struct Distance {
    const float *slope = nullptr;
    int centre = 0;
    const int *query = nullptr;
    const int *key = nullptr;

    int between(int i, int j) const {
        return key == nullptr ? (centre + i < j ? j - centre - i : centre + i - j)
                              : (query[i] < key[j] ? key[j] - query[i] : query[i] - key[j]);
    }
};

struct Heads {
    int queries = 1; // heads of queries; each key head serves queries / keys of them
    int keys = 1;
    int d_k = 1;
    int d_v = 1;
};

struct Kernels {
    const char *name;

    // Outputs of blocks [begin, end) of a matrix for all rows.
    void (*product_int8)(const Matrix &matrix, const Int8Rows &rows, int begin, int end, const Sink &sink);
    void (*product_float)(const Matrix &matrix, const FloatRows &rows, int begin, int end, const Sink &sink);
    // The sums of 8-bit products alone, without scales: (rows x 16 outputs of one block), for tests.
    void (*sums_int8)(const Matrix &matrix, const Int8Rows &rows, int block, int32_t *sums);

    // A row, whole blocks of it, to 8 bits: gives its scale and sum; a scale that is no number where the row holds one.
    void (*quantise)(const float *row, int size, int8_t *out, size_t out_size, float *scale, int32_t *sum);

    // Layer normalisation; that of the root mean square, from which no mean is taken, where ``centred`` is false.
    void (*norm)(const float *row, int size, const float *gain, const float *bias, float epsilon, bool centred,
                 float *out);
    void (*activate)(float *row, int size, Activation activation);
    void (*gate)(const float *gate, const float *inner, int size, Activation activation, float *out);

    // One query over vectors scattered in memory, all heads: out (queries x d_v). ``slope`` (queries): what a score loses
    // for each position of distance, or null; the newest of the past stands where the query does. ``weights``: room for
    // queries x padded count floats.
    void (*attend)(const float *query, const Past &past, const Heads &heads, const float *slope, float *weights,
                   float *out);
    // Queries over one source. The weights of query i are left in ``weights`` + i x heads.queries x padded source.
    void (*attend_source)(const FloatRows &queries, const Source &source, const Heads &heads, const Distance &distance,
                          float *weights, float *out, size_t out_stride);
    // Numbers to bfloat16, the nearest one; of two as near, the even one.
    void (*narrow)(const float *from, size_t count, uint16_t *to);

    // ``size`` logits of one row, with room up to whole blocks: their largest, and the sum of exp(logit - largest), no
    // number where one of them is none.
    void (*scan)(const float *logits, int size, float *largest, float *sum);
    // The places of those above ``threshold``, in rising order (at most ``size``); gives how many there are.
    int (*above)(const float *logits, int size, float threshold, int32_t *places);
};

const Kernels &portable_kernels();
#ifdef HEADWAY_X86
const Kernels &avx2_kernels();
const Kernels &avx_vnni_kernels();
const Kernels &avx512_kernels();
#endif

// The kernels by name, null if there are none or the processor lacks the instructions; "auto" is the best.
const Kernels *find_kernels(const char *name);

} // namespace headway
