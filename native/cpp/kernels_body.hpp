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
#include <type_traits>
#include <utility>

namespace headway {
namespace {

constexpr int PARTS = BLOCK / WIDTH; // vectors of a block

// ---- products ----------------------------------------------------------------------------------------------------

// Whether a product is all that is to be stored.
inline bool is_bare(const Matrix &matrix, const Sink &sink) {
    return matrix.bias == nullptr && sink.residual == nullptr && !sink.relu;
}

template <bool BARE>
inline void finish(Floats value, const Matrix &matrix, int block, int part_index, int row, const Sink &sink) {
    const size_t output = static_cast<size_t>(block) * BLOCK + static_cast<size_t>(part_index) * WIDTH;
    const size_t place = output - static_cast<size_t>(sink.first_block) * BLOCK;
    if (!BARE && matrix.bias != nullptr) value += load(matrix.bias + output);
    if (!BARE && sink.relu) value = larger(value, Floats{});
    if (!BARE && sink.residual != nullptr)
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

template <bool BARE, int ROWS, int BLOCKS>
inline __attribute__((always_inline)) void store_sums(const Sums (&sums)[ROWS][BLOCKS], const Matrix &matrix,
                                                      const Int8Rows &rows, int first_row, int block, const Sink &sink) {
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
                finish<BARE>(value, matrix, block + b, index, place, sink);
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
    if (is_bare(matrix, sink))
        store_sums<true>(sums, matrix, rows, first_row, block, sink);
    else
        store_sums<false>(sums, matrix, rows, first_row, block, sink);
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
            finish<false>(sums[row][vector], matrix, block + vector / PARTS, vector % PARTS, first_row + row, sink);
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

void quantise(const float *row, int size, int8_t *out, size_t out_size, float *scale, int32_t *sum) {
    Floats most{}, nothing{};
    for (int place = 0; place < size; place += WIDTH) {
        const Floats vector = load(row + place);
        most = larger(magnitude(vector), most);
        nothing += vector * 0.0F; // NaN where a number is none, or infinite
    }
    const float range = largest(most);
    const bool is_number = total(nothing) == 0.0F;
    // Where the quotient would be infinite the numbers count as zeros.
    const float factor = is_number && range > 1e-36F ? 127.0F / range : 0.0F;
    const Floats shift = all(12582912.0F);
    Ints sums{};
    int place = 0;
    for (; place < size; place += WIDTH) {
        const Floats rounded = is_number ? (load(row + place) * factor + shift) - shift : Floats{};
        const Ints whole = __builtin_convertvector(rounded, Ints);
        sums += whole;
        const Bytes narrow = __builtin_convertvector(whole, Bytes);
        std::memcpy(out + place, &narrow, sizeof narrow);
    }
    int32_t added = 0;
    for (int i = 0; i < WIDTH; ++i) added += sums[i];
    for (; static_cast<size_t>(place) < out_size; ++place) out[place] = 0;
    *scale = is_number ? range / 127.0F : std::numeric_limits<float>::quiet_NaN();
    *sum = added;
}

void norm(const float *row, int size, const float *gain, const float *bias, float epsilon, bool centred, float *out) {
    const int whole = size / WIDTH * WIDTH;
    float mean = 0.0F;
    if (centred) {
        Floats sum = whole < size ? load_some(row + whole, size - whole) : Floats{};
        for (int place = 0; place < whole; place += WIDTH) sum += load(row + place);
        mean = total(sum) / static_cast<float>(size);
    }
    Floats squares{};
    for (int place = 0; place < whole; place += WIDTH) {
        const Floats rest = load(row + place) - mean;
        squares += rest * rest;
    }
    float square = total(squares);
    for (int place = whole; place < size; ++place) square += (row[place] - mean) * (row[place] - mean);
    const float factor = 1.0F / std::sqrt(square / static_cast<float>(size) + epsilon);
    const auto scaled = [&](Floats vector, Floats own, Floats added) {
        return (vector - mean) * factor * own + added;
    };
    for (int place = 0; place < whole; place += WIDTH)
        store(out + place, scaled(load(row + place), load(gain + place), bias == nullptr ? Floats{} : load(bias + place)));
    if (whole == size) return;
    const int count = size - whole;
    store_some(out + whole,
               scaled(load_some(row + whole, count), load_some(gain + whole, count),
                      bias == nullptr ? Floats{} : load_some(bias + whole, count)),
               count);
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

// The first ``count`` numbers of a vector; -inf in the place of the others.
inline Floats only_first(Floats vector, int count) {
    Ints index;
    for (int i = 0; i < WIDTH; ++i) index[i] = i;
    return index < count ? vector : all(-std::numeric_limits<float>::infinity());
}

// Scores to weights, in place; so many numbers of whole blocks, the rest of which may be anything and becomes about 0.
inline void softmax(float *scores, int size) {
    const int width = static_cast<int>(padded(static_cast<size_t>(size)));
    Floats most = all(-std::numeric_limits<float>::infinity());
    for (int place = 0; place < width; place += WIDTH) {
        Floats vector = load(scores + place);
        if (place + WIDTH > size) {
            vector = only_first(vector, size - place);
            store(scores + place, vector);
        }
        most = vector == vector ? larger(vector, most) : vector; // a NaN stays in sight
    }
    const float high = largest(most);
    Floats sums{};
    for (int place = 0; place < width; place += WIDTH) {
        const Floats value = decay(load(scores + place) - high);
        store(scores + place, value);
        sums += value;
    }
    const float factor = 1.0F / total(sums);
    for (int place = 0; place < width; place += WIDTH) store(scores + place, load(scores + place) * factor);
}

template <class Number> inline float dot(const float *one, const Number *other, int size) {
    Floats sum{};
    int place = 0;
    for (; place + WIDTH <= size; place += WIDTH) sum += load(one + place) * load(other + place);
    float value = total(sum);
    for (; place < size; ++place) value += one[place] * widened(other[place]);
    return value;
}

// Four such products with one query; each is added up in the order of ``dot``.
template <class Number> inline Four dots(const float *query, const Number *const (&keys)[4], int size) {
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
        for (int i = 0; i < 4; ++i) total[i] += query[place] * widened(keys[i][place]);
    return total;
}

// One query of one head, what it may look at, its weights and its mixture. Several are computed side by side, for the next
// addition to one sum has to wait for the last.
template <class Number> struct Lane {
    const float *query;
    const Number *key;
    const Number *value;
    float *weights;
    float *out;
};

constexpr int LANES = WIDTH == 16 ? 4 : 2; // side by side

// ``VECTORS`` vectors of the mixtures of ``COUNT`` lanes; ``at(i)`` is where the values of place i stand. ALIKE: all lanes
// look at the same.
template <int COUNT, int VECTORS, bool ALIKE, class Number, class At>
inline __attribute__((always_inline)) void mix_vectors(const Lane<Number> *lanes, int places, int begin, At at) {
    Floats sums[COUNT][VECTORS];
#pragma GCC unroll 4
    for (int lane = 0; lane < COUNT; ++lane)
#pragma GCC unroll 4
        for (int vector = 0; vector < VECTORS; ++vector) sums[lane][vector] = Floats{};
    for (int i = 0; i < places; ++i) {
        const size_t place = at(i) + static_cast<size_t>(begin);
        Floats value[VECTORS];
        if (ALIKE)
#pragma GCC unroll 4
            for (int vector = 0; vector < VECTORS; ++vector) value[vector] = load(lanes[0].value + place + vector * WIDTH);
#pragma GCC unroll 4
        for (int lane = 0; lane < COUNT; ++lane) {
            const Floats weight = all(lanes[lane].weights[i]);
#pragma GCC unroll 4
            for (int vector = 0; vector < VECTORS; ++vector)
                sums[lane][vector] += (ALIKE ? value[vector] : load(lanes[lane].value + place + vector * WIDTH)) * weight;
        }
    }
#pragma GCC unroll 4
    for (int lane = 0; lane < COUNT; ++lane)
#pragma GCC unroll 4
        for (int vector = 0; vector < VECTORS; ++vector) store(lanes[lane].out + begin + vector * WIDTH, sums[lane][vector]);
}

template <int COUNT, bool ALIKE, class Number, class At> void mix(const Lane<Number> *lanes, int places, int d_v, At at) {
    int done = 0;
    for (; done + 4 * WIDTH <= d_v; done += 4 * WIDTH) mix_vectors<COUNT, 4, ALIKE>(lanes, places, done, at);
    for (; done + 2 * WIDTH <= d_v; done += 2 * WIDTH) mix_vectors<COUNT, 2, ALIKE>(lanes, places, done, at);
    for (; done + WIDTH <= d_v; done += WIDTH) mix_vectors<COUNT, 1, ALIKE>(lanes, places, done, at);
    for (; done < d_v; ++done)
        for (int lane = 0; lane < COUNT; ++lane) {
            float sum = 0.0F;
            for (int i = 0; i < places; ++i) sum += lanes[lane].weights[i] * widened(lanes[lane].value[at(i) + static_cast<size_t>(done)]);
            lanes[lane].out[done] = sum;
        }
}

// Calls ``run`` with lanes ``first`` on, LANES of them at once and one by one at the end.
template <class Run> inline void in_lanes(int count, const Run &run) {
    int first = 0;
    for (; first + LANES <= count; first += LANES) run(first, std::integral_constant<int, LANES>());
    for (; first < count; ++first) run(first, std::integral_constant<int, 1>());
}

template <class Number>
void attend_past(const float *query, const Past &past, const Heads &heads, const float *slope, float *weights, float *out) {
    const int shared = heads.queries / heads.keys;
    const float factor = 1.0F / std::sqrt(static_cast<float>(heads.d_k));
    const size_t width = padded(static_cast<size_t>(past.count));
    const auto *key = static_cast<const Number *>(past.key);
    const auto *value = static_cast<const Number *>(past.value);
    const auto key_at = [&](int place) { return key + static_cast<size_t>(past.offset[place]) * past.key_stride; };
    int place = 0;
    for (; place + 4 <= past.count; place += 4)
        for (int head = 0; head < heads.queries; ++head) {
            const int begin = head / shared * heads.d_k;
            const Number *const keys[4] = {key_at(place) + begin, key_at(place + 1) + begin, key_at(place + 2) + begin,
                                          key_at(place + 3) + begin};
            const Four scores = dots(query + head * heads.d_k, keys, heads.d_k) * factor;
            std::memcpy(weights + static_cast<size_t>(head) * width + place, &scores, sizeof scores);
        }
    for (; place < past.count; ++place)
        for (int head = 0; head < heads.queries; ++head)
            weights[static_cast<size_t>(head) * width + static_cast<size_t>(place)] =
                dot(query + head * heads.d_k, key_at(place) + head / shared * heads.d_k, heads.d_k) * factor;
    const auto lane_of = [&](int head) {
        return Lane<Number>{nullptr, nullptr, value + head / shared * heads.d_v, weights + static_cast<size_t>(head) * width,
                    out + head * heads.d_v};
    };
    for (int head = 0; head < heads.queries; ++head) {
        float *own = weights + static_cast<size_t>(head) * width;
        if (slope != nullptr)
            for (int i = 0; i < past.count; ++i) own[i] -= slope[head] * static_cast<float>(past.count - 1 - i);
        softmax(own, past.count);
    }
    in_lanes(heads.queries, [&](int first, auto count) {
        Lane<Number> lanes[count()];
        for (int i = 0; i < count(); ++i) lanes[i] = lane_of(first + i);
        mix<count(), false>(lanes, past.count, heads.d_v,
                            [&](int i) { return static_cast<size_t>(past.offset[i]) * past.value_stride; });
    });
}

// Scores over keys that stand side by side (number x width): ``VECTORS`` vectors of them at once for ``COUNT`` lanes.
template <int COUNT, int VECTORS, bool ALIKE, class Number>
inline __attribute__((always_inline)) void score_vectors(const Lane<Number> *lanes, size_t width, size_t begin, int d_k, float factor) {
    Floats sums[COUNT][VECTORS];
#pragma GCC unroll 4
    for (int lane = 0; lane < COUNT; ++lane)
#pragma GCC unroll 4
        for (int vector = 0; vector < VECTORS; ++vector) sums[lane][vector] = Floats{};
    for (int i = 0; i < d_k; ++i) {
        const size_t place = static_cast<size_t>(i) * width + begin;
        Floats key[VECTORS];
        if (ALIKE)
#pragma GCC unroll 4
            for (int vector = 0; vector < VECTORS; ++vector) key[vector] = load(lanes[0].key + place + vector * WIDTH);
#pragma GCC unroll 4
        for (int lane = 0; lane < COUNT; ++lane) {
            const Floats number = all(lanes[lane].query[i]);
#pragma GCC unroll 4
            for (int vector = 0; vector < VECTORS; ++vector)
                sums[lane][vector] += (ALIKE ? key[vector] : load(lanes[lane].key + place + vector * WIDTH)) * number;
        }
    }
#pragma GCC unroll 4
    for (int lane = 0; lane < COUNT; ++lane)
#pragma GCC unroll 4
        for (int vector = 0; vector < VECTORS; ++vector)
            store(lanes[lane].weights + begin + vector * WIDTH, sums[lane][vector] * factor);
}

template <int COUNT, bool ALIKE, class Number> void score(const Lane<Number> *lanes, size_t width, int d_k, float factor) {
    size_t place = 0;
    for (; place + 4 * WIDTH <= width; place += 4 * WIDTH) score_vectors<COUNT, 4, ALIKE>(lanes, width, place, d_k, factor);
    for (; place + 2 * WIDTH <= width; place += 2 * WIDTH) score_vectors<COUNT, 2, ALIKE>(lanes, width, place, d_k, factor);
    for (; place < width; place += WIDTH) score_vectors<COUNT, 1, ALIKE>(lanes, width, place, d_k, factor);
}

template <class Number>
void attend_over(const FloatRows &queries, const Source &source, const Heads &heads, const Distance &distance,
                 float *weights, float *out, size_t out_stride) {
    const int shared = heads.queries / heads.keys;
    const float factor = 1.0F / std::sqrt(static_cast<float>(heads.d_k));
    const size_t width = padded(static_cast<size_t>(source.length));
    const size_t value_stride = static_cast<size_t>(heads.keys * heads.d_v);
    const auto *key = static_cast<const Number *>(source.key);
    const auto *value = static_cast<const Number *>(source.value);
    const auto lane_of = [&](int row, int head) {
        const int kept = head / shared;
        return Lane<Number>{queries.data + static_cast<size_t>(row) * queries.stride + head * heads.d_k,
                    key + static_cast<size_t>(kept * heads.d_k) * width, value + kept * heads.d_v,
                    weights + (static_cast<size_t>(row) * static_cast<size_t>(heads.queries) + static_cast<size_t>(head)) * width,
                    out + static_cast<size_t>(row) * out_stride + head * heads.d_v};
    };
    const auto run = [&](const Lane<Number> *lanes, int row, int head, int row_step, int head_step, auto lane_count, auto alike) {
        score<lane_count(), alike()>(lanes, width, heads.d_k, factor);
        for (int lane = 0; lane < lane_count(); ++lane) {
            float *scores = lanes[lane].weights;
            if (distance.slope != nullptr)
                for (int i = 0; i < source.length; ++i)
                    scores[i] -= distance.slope[head + lane * head_step] * static_cast<float>(distance.between(row + lane * row_step, i));
            softmax(scores, source.length);
        }
        mix<lane_count(), alike()>(lanes, source.length, heads.d_v, [&](int i) { return static_cast<size_t>(i) * value_stride; });
    };
    const int rows = queries.count / LANES * LANES;
    for (int head = 0; head < heads.queries; ++head)
        for (int row = 0; row < rows; row += LANES) {
            Lane<Number> lanes[LANES];
            for (int i = 0; i < LANES; ++i) lanes[i] = lane_of(row + i, head);
            run(lanes, row, head, 1, 0, std::integral_constant<int, LANES>(), std::true_type());
        }
    // What is left of the rows: heads side by side.
    for (int row = rows; row < queries.count; ++row)
        in_lanes(heads.queries, [&](int head, auto lane_count) {
            Lane<Number> lanes[lane_count()];
            for (int i = 0; i < lane_count(); ++i) lanes[i] = lane_of(row, head + i);
            run(lanes, row, head, 0, 1, lane_count, std::false_type());
        });
}

void attend(const float *query, const Past &past, const Heads &heads, const float *slope, float *weights, float *out) {
    (past.is_short ? attend_past<uint16_t> : attend_past<float>)(query, past, heads, slope, weights, out);
}

void attend_source(const FloatRows &queries, const Source &source, const Heads &heads, const Distance &distance,
                   float *weights, float *out, size_t out_stride) {
    (source.is_short ? attend_over<uint16_t> : attend_over<float>)(queries, source, heads, distance, weights, out, out_stride);
}

void narrow(const float *from, size_t count, uint16_t *to) {
    for (size_t place = 0; place < count; ++place) to[place] = narrowed(from[place]);
}

// ---- logits ------------------------------------------------------------------------------------------------------

void scan(const float *logits, int size, float *high, float *sum) {
    Floats most = all(-std::numeric_limits<float>::infinity());
    int place = 0;
    for (; place + WIDTH <= size; place += WIDTH) {
        const Floats vector = load(logits + place);
        most = vector == vector ? larger(vector, most) : vector; // a NaN stays in sight
    }
    if (place < size) most = larger(only_first(load(logits + place), size - place), most);
    const float peak = largest(most);
    Floats sums{};
    for (place = 0; place + WIDTH <= size; place += WIDTH) sums += decay(load(logits + place) - peak);
    if (place < size) sums += decay(only_first(load(logits + place), size - place) - peak);
    *high = peak;
    *sum = total(sums);
}

int above(const float *logits, int size, float threshold, int32_t *places) {
    int found = 0;
    for (int place = 0; place < size; place += WIDTH) {
        unsigned bits = bits_above(load(logits + place), threshold);
        if (size - place < WIDTH) bits &= (1U << (size - place)) - 1U;
        for (; bits != 0; bits &= bits - 1U) places[found++] = place + __builtin_ctz(bits);
    }
    return found;
}

constexpr Kernels table(const char *name) {
    return {name, product_int8, product_float, sums_int8, quantise, norm, activate, gate, attend, attend_source,
            narrow, scan, above};
}

} // namespace
} // namespace headway
