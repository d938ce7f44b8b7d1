// Every kernel, for the instructions of the file that includes this. That file has defined before: HEADWAY_WIDTH;
// MOST_ROWS, the most rows of one tile; and how 8-bit numbers are multiplied: Sums, Weights, Spread, no_sums,
// load_weights, spread, accumulate, part.
//
// A tile is some rows times some blocks of 16 outputs whose sums stay in registers while all inputs pass by.
#pragma once

#include "kernels.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace headway {
namespace {

constexpr int PARTS = BLOCK / WIDTH; // vectors of a block

// ---- products ----------------------------------------------------------------------------------------------------

inline void finish(Floats value, const Matrix &matrix, int block, int part_index, int row, const Sink &sink) {
    const size_t output = static_cast<size_t>(block) * BLOCK + static_cast<size_t>(part_index) * WIDTH;
    const size_t place = output - static_cast<size_t>(sink.first_block) * BLOCK;
    if (matrix.bias != nullptr) value += load(matrix.bias + output);
    if (sink.relu) value = larger(value, Floats{});
    if (sink.residual != nullptr)
        value += load(sink.residual + static_cast<size_t>(row) * sink.residual_stride + place) * sink.residual_weight;
    store(sink.out + static_cast<size_t>(row) * sink.stride + place, value);
}

template <int ROWS, int BLOCKS>
inline __attribute__((always_inline)) void int8_sums(const uint8_t *weights, size_t block_bytes, int groups,
                                                     const int8_t *rows, size_t stride, Sums (&sums)[ROWS][BLOCKS]) {
#pragma GCC unroll 16
    for (int row = 0; row < ROWS; ++row)
#pragma GCC unroll 8
        for (int block = 0; block < BLOCKS; ++block) sums[row][block] = no_sums();
    for (int group = 0; group < groups; ++group) {
        Weights loaded[BLOCKS];
#pragma GCC unroll 8
        for (int block = 0; block < BLOCKS; ++block)
            loaded[block] = load_weights(weights + static_cast<size_t>(block) * block_bytes +
                                         static_cast<size_t>(group) * BLOCK * GROUP);
#pragma GCC unroll 16
        for (int row = 0; row < ROWS; ++row) {
            const Spread numbers = spread(rows + static_cast<size_t>(row) * stride + static_cast<size_t>(group) * GROUP);
#pragma GCC unroll 8
            for (int block = 0; block < BLOCKS; ++block) accumulate(sums[row][block], loaded[block], numbers);
        }
    }
}

template <int ROWS, int BLOCKS>
void int8_tile(const Matrix &matrix, const Int8Rows &rows, int first_row, int block, const Sink &sink) {
    const size_t block_bytes = static_cast<size_t>(matrix.groups()) * BLOCK * GROUP;
    const auto *weights = static_cast<const uint8_t *>(matrix.data) + static_cast<size_t>(block) * block_bytes;
    Sums sums[ROWS][BLOCKS];
    int8_sums<ROWS, BLOCKS>(weights, block_bytes, matrix.groups(),
                            rows.data + static_cast<size_t>(first_row) * rows.stride, rows.stride, sums);
#pragma GCC unroll 16
    for (int row = 0; row < ROWS; ++row) {
        const int place = first_row + row;
        const int32_t excess = 128 * rows.sum[place]; // weights are stored 128 too large
#pragma GCC unroll 8
        for (int b = 0; b < BLOCKS; ++b)
#pragma GCC unroll 4
            for (int index = 0; index < PARTS; ++index) {
                const float *scale = matrix.scale + static_cast<size_t>(block + b) * BLOCK + index * WIDTH;
                const Floats value = to_floats(part(sums[row][b], index) - excess) * (load(scale) * rows.scale[place]);
                finish(value, matrix, block + b, index, place, sink);
            }
    }
}

template <int ROWS, int BLOCKS>
void float_tile(const Matrix &matrix, const FloatRows &rows, int first_row, int block, const Sink &sink) {
    const size_t block_floats = static_cast<size_t>(matrix.inputs) * BLOCK;
    const float *weights = static_cast<const float *>(matrix.data) + static_cast<size_t>(block) * block_floats;
    const float *numbers = rows.data + static_cast<size_t>(first_row) * rows.stride;
    Floats sums[ROWS][BLOCKS * PARTS];
#pragma GCC unroll 16
    for (int row = 0; row < ROWS; ++row)
#pragma GCC unroll 16
        for (int vector = 0; vector < BLOCKS * PARTS; ++vector) sums[row][vector] = Floats{};
    for (int input = 0; input < matrix.inputs; ++input) {
        Floats loaded[BLOCKS * PARTS];
#pragma GCC unroll 16
        for (int vector = 0; vector < BLOCKS * PARTS; ++vector)
            loaded[vector] = load(weights + static_cast<size_t>(vector / PARTS) * block_floats +
                                  static_cast<size_t>(input) * BLOCK + vector % PARTS * WIDTH);
#pragma GCC unroll 16
        for (int row = 0; row < ROWS; ++row) {
            const Floats number = all(numbers[static_cast<size_t>(row) * rows.stride + static_cast<size_t>(input)]);
#pragma GCC unroll 16
            for (int vector = 0; vector < BLOCKS * PARTS; ++vector) sums[row][vector] += loaded[vector] * number;
        }
    }
#pragma GCC unroll 16
    for (int row = 0; row < ROWS; ++row)
#pragma GCC unroll 16
        for (int vector = 0; vector < BLOCKS * PARTS; ++vector)
            finish(sums[row][vector], matrix, block + vector / PARTS, vector % PARTS, first_row + row, sink);
}

template <int ROWS, int BLOCKS> struct Int8Tile {
    static constexpr auto run = int8_tile<ROWS, BLOCKS>;
};
template <int ROWS, int BLOCKS> struct FloatTile {
    static constexpr auto run = float_tile<ROWS, BLOCKS>;
};

// The function of a tile with so many rows (1 to MOST_ROWS).
template <template <int, int> class Tile, int BLOCKS, int... ROWS>
constexpr auto tile_of(int rows, std::integer_sequence<int, ROWS...>) {
    constexpr decltype(Tile<1, BLOCKS>::run) tiles[] = {Tile<ROWS + 1, BLOCKS>::run...};
    return tiles[rows - 1];
}

// All tiles of a product. The weights of some blocks stay in the nearest cache while the rows pass by.
template <template <int, int> class Tile, int BLOCKS, int MOST, class Rows>
int tiles(const Matrix &matrix, const Rows &rows, int begin, int end, const Sink &sink) {
    const int parts = (rows.count + MOST - 1) / MOST;
    int block = begin;
    for (; block + BLOCKS <= end; block += BLOCKS)
        for (int index = 0, row = 0; index < parts; ++index) {
            const int size = (rows.count - row + parts - index - 1) / (parts - index);
            tile_of<Tile, BLOCKS>(size, std::make_integer_sequence<int, MOST>())(matrix, rows, row, block, sink);
            row += size;
        }
    return block;
}

template <template <int, int> class Tile, class Rows>
void product(const Matrix &matrix, const Rows &rows, int begin, int end, const Sink &sink) {
    if (rows.count == 0) return;
    // Few rows leave registers free: then more blocks at once hide the time that an instruction takes.
#if HEADWAY_WIDTH == 16
    if (rows.count <= 3)
        begin = tiles<Tile, 8, 3>(matrix, rows, begin, end, sink);
    else if (rows.count <= 6)
        begin = tiles<Tile, 4, 6>(matrix, rows, begin, end, sink);
    else
        begin = tiles<Tile, 2, MOST_ROWS>(matrix, rows, begin, end, sink);
#elif HEADWAY_WIDTH == 8
    if (rows.count <= 2) begin = tiles<Tile, 2, 2>(matrix, rows, begin, end, sink);
#endif
    tiles<Tile, 1, MOST_ROWS>(matrix, rows, begin, end, sink);
}

void product_int8(const Matrix &matrix, const Int8Rows &rows, int begin, int end, const Sink &sink) {
    product<Int8Tile>(matrix, rows, begin, end, sink);
}

void product_float(const Matrix &matrix, const FloatRows &rows, int begin, int end, const Sink &sink) {
    product<FloatTile>(matrix, rows, begin, end, sink);
}

void sums_int8(const Matrix &matrix, const Int8Rows &rows, int block, int32_t *out) {
    const size_t block_bytes = static_cast<size_t>(matrix.groups()) * BLOCK * GROUP;
    const auto *weights = static_cast<const uint8_t *>(matrix.data) + static_cast<size_t>(block) * block_bytes;
    for (int row = 0; row < rows.count; ++row) {
        Sums sums[1][1];
        int8_sums<1, 1>(weights, block_bytes, matrix.groups(), rows.data + static_cast<size_t>(row) * rows.stride,
                        rows.stride, sums);
        for (int index = 0; index < PARTS; ++index) {
            const Ints values = part(sums[0][0], index) - 128 * rows.sum[row];
            std::memcpy(out + row * BLOCK + index * WIDTH, &values, sizeof values);
        }
    }
}

// ---- rows --------------------------------------------------------------------------------------------------------

// Calls ``visit(place, vector)`` for all vectors of a row; the last may be part zeros.
template <class Visit> inline void each(const float *row, int size, Visit visit) {
    int place = 0;
    for (; place + WIDTH <= size; place += WIDTH) visit(place, load(row + place));
    if (place < size) visit(place, load_some(row + place, size - place));
}

void quantise(const float *row, int size, int8_t *out, size_t out_size, float *scale, int32_t *sum) {
    Floats most{}, nothing{};
    each(row, size, [&](int, Floats vector) {
        most = larger(magnitude(vector), most);
        nothing += vector * 0.0F; // NaN where a number is none, or infinite
    });
    const float range = largest(most);
    const float doubt = total(nothing);
    const bool is_number = doubt == 0.0F;
    const float factor = is_number && range > 0.0F ? 127.0F / range : 0.0F;
    const Floats shift = all(12582912.0F);
    int32_t added = 0;
    Ints sums{};
    each(row, size, [&](int place, Floats vector) {
        const Floats rounded = is_number ? (vector * factor + shift) - shift : Floats{};
        const Ints whole = __builtin_convertvector(rounded, Ints);
        sums += whole;
        const Bytes narrow = __builtin_convertvector(whole, Bytes);
        const int count = size - place < WIDTH ? size - place : WIDTH;
        std::memcpy(out + place, &narrow, static_cast<size_t>(count));
    });
    for (int i = 0; i < WIDTH; ++i) added += sums[i];
    std::memset(out + size, 0, out_size - static_cast<size_t>(size));
    *scale = is_number ? range / 127.0F : std::numeric_limits<float>::quiet_NaN();
    *sum = added;
}

void norm(const float *row, int size, const float *gain, const float *bias, float epsilon, bool centred, float *out) {
    float mean = 0.0F;
    if (centred) {
        Floats sum{};
        each(row, size, [&](int, Floats vector) { sum += vector; });
        mean = total(sum) / static_cast<float>(size);
    }
    Floats squares{};
    int place = 0;
    for (; place + WIDTH <= size; place += WIDTH) {
        const Floats rest = load(row + place) - mean;
        squares += rest * rest;
    }
    float square = total(squares);
    for (; place < size; ++place) square += (row[place] - mean) * (row[place] - mean);
    const float factor = 1.0F / std::sqrt(square / static_cast<float>(size) + epsilon);
    each(row, size, [&](int at, Floats vector) {
        const int count = size - at < WIDTH ? size - at : WIDTH;
        Floats value = (vector - mean) * factor * load_some(gain + at, count);
        if (bias != nullptr) value += load_some(bias + at, count);
        store_some(out + at, value, count);
    });
}

// erf as an odd fraction of polynomials, within 4: beyond, it is 1 in float32.
inline Floats error_function(Floats x) {
    const Floats bounded = smaller(larger(x, all(-4.0F)), all(4.0F));
    const Floats square = bounded * bounded;
    Floats above = all(-2.72614225801306e-10F);
    above = above * square + 2.77068142495902e-08F;
    above = above * square + -2.10102402082508e-06F;
    above = above * square + -5.69250639462346e-05F;
    above = above * square + -7.34990630326855e-04F;
    above = above * square + -2.95459980854025e-03F;
    above = above * square + -1.60960333262415e-02F;
    Floats below = all(-1.45660718464996e-05F);
    below = below * square + -2.13374055278905e-04F;
    below = below * square + -1.68282697438203e-03F;
    below = below * square + -7.37332916720468e-03F;
    below = below * square + -1.42647390514189e-02F;
    return bounded * above / below;
}

inline Floats activated(Floats x, Activation activation) {
    switch (activation) {
    case Activation::gelu:
        return x * 0.5F * (error_function(x * 0.70710678F) + 1.0F);
    case Activation::silu:
        return x / (exponential(-x) + 1.0F);
    default:
        return larger(x, Floats{});
    }
}

void activate(float *row, int size, Activation activation) {
    for (int place = 0; place < size; place += WIDTH) store(row + place, activated(load(row + place), activation));
}

void gate(const float *gates, const float *inner, int size, Activation activation, float *out) {
    for (int place = 0; place < size; place += WIDTH)
        store(out + place, activated(load(gates + place), activation) * load(inner + place));
}

// ---- attention ---------------------------------------------------------------------------------------------------

// Scores to weights, in place.
inline void softmax(float *scores, int size) {
    Floats most = all(-std::numeric_limits<float>::infinity());
    int place = 0;
    for (; place + WIDTH <= size; place += WIDTH) most = larger(load(scores + place), most);
    float high = largest(most);
    for (; place < size; ++place) high = scores[place] > high ? scores[place] : high;
    float sum = 0.0F;
    Floats sums{};
    for (place = 0; place + WIDTH <= size; place += WIDTH) {
        const Floats value = exponential(load(scores + place) - high);
        store(scores + place, value);
        sums += value;
    }
    sum = total(sums);
    if (place < size) {
        const int count = size - place;
        Floats value = exponential(load_some(scores + place, count) - high);
        store_some(scores + place, value, count);
        for (int i = 0; i < count; ++i) sum += value[i];
    }
    const float factor = 1.0F / sum;
    for (place = 0; place + WIDTH <= size; place += WIDTH) store(scores + place, load(scores + place) * factor);
    for (; place < size; ++place) scores[place] *= factor;
}

inline float dot(const float *one, const float *other, int size) {
    Floats sum{};
    int place = 0;
    for (; place + WIDTH <= size; place += WIDTH) sum += load(one + place) * load(other + place);
    float value = total(sum);
    for (; place < size; ++place) value += one[place] * other[place];
    return value;
}

// Four such products with one query; each is added up in the order of ``dot``.
inline Four dots(const float *query, const float *const (&keys)[4], int size) {
    Floats sum[4] = {Floats{}, Floats{}, Floats{}, Floats{}};
    int place = 0;
    for (; place + WIDTH <= size; place += WIDTH) {
        const Floats numbers = load(query + place);
        for (int i = 0; i < 4; ++i) sum[i] += numbers * load(keys[i] + place);
    }
    const auto plus = [](auto one, auto other) { return one + other; };
    const Four a = folded(sum[0], plus), b = folded(sum[1], plus), c = folded(sum[2], plus), d = folded(sum[3], plus);
    const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
    Four total = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    for (; place < size; ++place)
        for (int i = 0; i < 4; ++i) total[i] += query[place] * keys[i][place];
    return total;
}

// ``VECTORS`` vectors of the mixture of one head's values, which stand where ``past`` says.
template <int VECTORS>
inline void mix_past(const float *weights, const Past &past, size_t begin, float *out) {
    Floats sums[VECTORS];
    for (int vector = 0; vector < VECTORS; ++vector) sums[vector] = Floats{};
    for (int i = 0; i < past.count; ++i) {
        const float *value = past.value + static_cast<size_t>(past.offset[i]) * past.value_stride + begin;
        const Floats weight = all(weights[i]);
        for (int vector = 0; vector < VECTORS; ++vector) sums[vector] += load(value + vector * WIDTH) * weight;
    }
    for (int vector = 0; vector < VECTORS; ++vector) store(out + vector * WIDTH, sums[vector]);
}

void attend(const float *query, const Past &past, const Heads &heads, const float *slope, float *weights, float *out) {
    const int shared = heads.queries / heads.keys;
    const float root = std::sqrt(static_cast<float>(heads.d_k));
    const auto count = static_cast<size_t>(past.count);
    const auto key_at = [&](int place) { return past.key + static_cast<size_t>(past.offset[place]) * past.key_stride; };
    int place = 0;
    for (; place + 4 <= past.count; place += 4)
        for (int head = 0; head < heads.queries; ++head) {
            const int begin = head / shared * heads.d_k;
            const float *const keys[4] = {key_at(place) + begin, key_at(place + 1) + begin, key_at(place + 2) + begin,
                                          key_at(place + 3) + begin};
            const Four scores = dots(query + head * heads.d_k, keys, heads.d_k) / root;
            std::memcpy(weights + static_cast<size_t>(head) * count + place, &scores, sizeof scores);
        }
    for (; place < past.count; ++place)
        for (int head = 0; head < heads.queries; ++head)
            weights[static_cast<size_t>(head) * count + static_cast<size_t>(place)] =
                dot(query + head * heads.d_k, key_at(place) + head / shared * heads.d_k, heads.d_k) / root;
    for (int head = 0; head < heads.queries; ++head) {
        float *own = weights + static_cast<size_t>(head) * count;
        if (slope != nullptr)
            for (int i = 0; i < past.count; ++i) own[i] -= slope[head] * static_cast<float>(past.count - 1 - i);
        softmax(own, past.count);
        float *mixed = out + head * heads.d_v;
        const auto begin = static_cast<size_t>(head / shared * heads.d_v);
        int done = 0;
        for (; done + 4 * WIDTH <= heads.d_v; done += 4 * WIDTH)
            mix_past<4>(own, past, begin + static_cast<size_t>(done), mixed + done);
        for (; done + 2 * WIDTH <= heads.d_v; done += 2 * WIDTH)
            mix_past<2>(own, past, begin + static_cast<size_t>(done), mixed + done);
        for (; done + WIDTH <= heads.d_v; done += WIDTH)
            mix_past<1>(own, past, begin + static_cast<size_t>(done), mixed + done);
        for (; done < heads.d_v; ++done) {
            mixed[done] = 0.0F;
            for (int i = 0; i < past.count; ++i)
                mixed[done] += own[i] * past.value[static_cast<size_t>(past.offset[i]) * past.value_stride + begin + static_cast<size_t>(done)];
        }
    }
}

// Scores of one query and head over keys that stand side by side: ``VECTORS`` vectors of them at once.
template <int VECTORS>
inline void score_keys(const float *query, const float *key, size_t key_stride, int d_k, float root, float *scores) {
    Floats sums[VECTORS];
    for (int vector = 0; vector < VECTORS; ++vector) sums[vector] = Floats{};
    for (int i = 0; i < d_k; ++i) {
        const Floats number = all(query[i]);
#pragma GCC unroll 4
        for (int vector = 0; vector < VECTORS; ++vector)
            sums[vector] += load(key + static_cast<size_t>(i) * key_stride + vector * WIDTH) * number;
    }
    for (int vector = 0; vector < VECTORS; ++vector) store(scores + vector * WIDTH, sums[vector] / root);
}

// The mixture of values for one query and head: ``VECTORS`` vectors of it at once.
template <int VECTORS>
inline void mix_values(const float *weights, const float *value, size_t value_stride, int source, float *out) {
    Floats sums[VECTORS];
    for (int vector = 0; vector < VECTORS; ++vector) sums[vector] = Floats{};
    for (int i = 0; i < source; ++i) {
        const Floats weight = all(weights[i]);
#pragma GCC unroll 4
        for (int vector = 0; vector < VECTORS; ++vector)
            sums[vector] += load(value + static_cast<size_t>(i) * value_stride + vector * WIDTH) * weight;
    }
    for (int vector = 0; vector < VECTORS; ++vector) store(out + vector * WIDTH, sums[vector]);
}

void attend_source(const float *queries, size_t query_stride, int count, const float *key, const float *value,
                   int source, const Heads &heads, const float *slope, int centre, float *weights, float *out,
                   size_t out_stride) {
    const int shared = heads.queries / heads.keys;
    const float root = std::sqrt(static_cast<float>(heads.d_k));
    const size_t width = padded(static_cast<size_t>(source));
    const size_t value_stride = static_cast<size_t>(heads.keys * heads.d_v);
    for (int head = 0; head < heads.queries; ++head) {
        const int kept = head / shared;
        const float *head_key = key + static_cast<size_t>(kept * heads.d_k) * width;
        const float *head_value = value + kept * heads.d_v;
        for (int row = 0; row < count; ++row) {
            const float *query = queries + static_cast<size_t>(row) * query_stride + head * heads.d_k;
            float *scores = weights + (static_cast<size_t>(row) * static_cast<size_t>(heads.queries) +
                                       static_cast<size_t>(head)) * width;
            size_t place = 0;
            for (; place + 4 * WIDTH <= width; place += 4 * WIDTH)
                score_keys<4>(query, head_key + place, width, heads.d_k, root, scores + place);
            for (; place + 2 * WIDTH <= width; place += 2 * WIDTH)
                score_keys<2>(query, head_key + place, width, heads.d_k, root, scores + place);
            for (; place < width; place += WIDTH)
                score_keys<1>(query, head_key + place, width, heads.d_k, root, scores + place);
            if (slope != nullptr)
                for (int i = 0; i < source; ++i)
                    scores[i] -= slope[head] * static_cast<float>(std::abs(centre + row - i));
            softmax(scores, source);
            float *mixed = out + static_cast<size_t>(row) * out_stride + head * heads.d_v;
            int done = 0;
            for (; done + 4 * WIDTH <= heads.d_v; done += 4 * WIDTH)
                mix_values<4>(scores, head_value + done, value_stride, source, mixed + done);
            for (; done + WIDTH <= heads.d_v; done += WIDTH)
                mix_values<1>(scores, head_value + done, value_stride, source, mixed + done);
            for (; done < heads.d_v; ++done) {
                float sum = 0.0F;
                for (int i = 0; i < source; ++i) sum += scores[i] * head_value[static_cast<size_t>(i) * value_stride + static_cast<size_t>(done)];
                mixed[done] = sum;
            }
        }
    }
}

// ---- logits ------------------------------------------------------------------------------------------------------

int scan(const float *logits, int size, float threshold, float *high, float *sum, int32_t *places) {
    Floats most = all(-std::numeric_limits<float>::infinity());
    int place = 0;
    for (; place + WIDTH <= size; place += WIDTH) {
        const Floats vector = load(logits + place);
        most = vector == vector ? larger(vector, most) : vector; // a NaN stays in sight
    }
    float peak = largest(most);
    for (; place < size; ++place) peak = logits[place] > peak ? logits[place] : peak;
    Floats sums{};
    for (place = 0; place + WIDTH <= size; place += WIDTH) sums += exponential(load(logits + place) - peak);
    float added = total(sums);
    if (place < size) {
        const Floats value = exponential(load_some(logits + place, size - place) - peak);
        for (int i = 0; i < size - place; ++i) added += value[i];
    }
    *high = peak;
    *sum = added;
    if (!(peak > threshold)) return 0;
    int found = 0;
    for (place = 0; place < size; place += WIDTH) {
        const int count = size - place < WIDTH ? size - place : WIDTH;
        if (count == WIDTH && !(largest(load(logits + place)) > threshold)) continue;
        for (int i = 0; i < count; ++i)
            if (logits[place + i] > threshold) places[found++] = place + i;
    }
    return found;
}

constexpr Kernels table(const char *name) {
    return {name, product_int8, product_float, sums_int8, quantise, norm, activate, gate, attend, attend_source, scan};
}

} // namespace
} // namespace headway
