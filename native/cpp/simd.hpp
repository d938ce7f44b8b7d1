// Vectors of floats of a width that the file which includes this has set: HEADWAY_WIDTH 4, 8 or 16. Written with the
// vector types of GCC and Clang, so the same lines serve every processor.
//
// Everything here has internal linkage: each kernel file is compiled for other instructions, and the linker must never
// take the one's function for the other's.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headway {
namespace {

constexpr int WIDTH = HEADWAY_WIDTH;

typedef float Floats __attribute__((vector_size(4 * HEADWAY_WIDTH)));
typedef int32_t Ints __attribute__((vector_size(4 * HEADWAY_WIDTH)));
typedef uint32_t Words __attribute__((vector_size(4 * HEADWAY_WIDTH))); // whose sums may pass their end
typedef int8_t Bytes __attribute__((vector_size(HEADWAY_WIDTH)));

inline Floats load(const float *from) {
    Floats vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

// The first ``count`` floats, zeros behind them.
inline Floats load_some(const float *from, int count) {
    Floats vector{};
    std::memcpy(&vector, from, sizeof(float) * static_cast<size_t>(count));
    return vector;
}

// bfloat16: the upper half of a float.
typedef uint16_t Shorts __attribute__((vector_size(2 * HEADWAY_WIDTH)));
typedef uint32_t Words __attribute__((vector_size(4 * HEADWAY_WIDTH)));

inline Floats load(const uint16_t *from) {
    Shorts halves;
    std::memcpy(&halves, from, sizeof halves);
    const Words words = __builtin_convertvector(halves, Words) << 16;
    Floats vector;
    std::memcpy(&vector, &words, sizeof vector);
    return vector;
}

inline float widened(float number) { return number; }
inline float widened(uint16_t number) {
    const uint32_t word = static_cast<uint32_t>(number) << 16;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}

inline uint16_t narrowed(float number) {
    uint32_t word;
    std::memcpy(&word, &number, sizeof word);
    if ((word & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>(word >> 16 | 0x40U); // a NaN stays one
    return static_cast<uint16_t>((word + 0x7fffU + (word >> 16 & 1U)) >> 16);
}

inline void store(float *to, Floats vector) { std::memcpy(to, &vector, sizeof vector); }

inline void store_some(float *to, Floats vector, int count) {
    std::memcpy(to, &vector, sizeof(float) * static_cast<size_t>(count));
}

inline Floats all(float value) { return value - Floats{}; }

inline Floats larger(Floats one, Floats other) { return one > other ? one : other; }
inline Floats smaller(Floats one, Floats other) { return one < other ? one : other; }
inline Floats magnitude(Floats vector) {
    Ints bits;
    std::memcpy(&bits, &vector, sizeof bits);
    bits &= 0x7fffffff;
    std::memcpy(&vector, &bits, sizeof bits);
    return vector;
}

typedef float Four __attribute__((vector_size(16)));
typedef float Eight __attribute__((vector_size(32)));

// A vector's halves joined, and so on, down to four numbers.
template <class Join> inline Four folded(Floats vector, Join join) {
#if HEADWAY_WIDTH == 16
    const Eight eight = join(__builtin_shufflevector(vector, vector, 0, 1, 2, 3, 4, 5, 6, 7),
                             __builtin_shufflevector(vector, vector, 8, 9, 10, 11, 12, 13, 14, 15));
    return join(__builtin_shufflevector(eight, eight, 0, 1, 2, 3), __builtin_shufflevector(eight, eight, 4, 5, 6, 7));
#elif HEADWAY_WIDTH == 8
    return join(__builtin_shufflevector(vector, vector, 0, 1, 2, 3), __builtin_shufflevector(vector, vector, 4, 5, 6, 7));
#else
    (void)join;
    return vector;
#endif
}

inline float total(Floats vector) {
    const Four four = folded(vector, [](auto one, auto other) { return one + other; });
    return (four[0] + four[2]) + (four[1] + four[3]);
}

inline float largest(Floats vector) {
    const Four four = folded(vector, [](auto one, auto other) { return one > other ? one : other; });
    const float first = four[0] > four[2] ? four[0] : four[2];
    const float second = four[1] > four[3] ? four[1] : four[3];
    return first > second ? first : second;
}

// Bit i: whether number i is above the threshold.
inline unsigned bits_above(Floats vector, float threshold) {
#if HEADWAY_WIDTH == 16
    return _mm512_cmp_ps_mask(reinterpret_cast<__m512>(vector), _mm512_set1_ps(threshold), _CMP_GT_OQ);
#elif HEADWAY_WIDTH == 8
    return static_cast<unsigned>(_mm256_movemask_ps(reinterpret_cast<__m256>(vector > threshold)));
#elif defined(__x86_64__)
    return static_cast<unsigned>(_mm_movemask_ps(reinterpret_cast<__m128>(vector > threshold)));
#else
    unsigned bits = 0;
    for (int i = 0; i < WIDTH; ++i) bits |= static_cast<unsigned>(vector[i] > threshold) << i;
    return bits;
#endif
}

inline Floats to_floats(Ints vector) { return __builtin_convertvector(vector, Floats); }

// exp of what lies between -87.3 and 88, with an error of 1 to 2 units in the last place. A NaN stays one.
inline Floats bounded_exponential(Floats x) {
    const Floats shifted = x * 1.44269504F + 12582912.0F; // 1.5 x 2^23 leaves the power, whole, in the lowest bits
    const Floats power = shifted - 12582912.0F;
    // ln 2 in two parts: the first has so few digits that its product with a whole number is exact
    const Floats rest = (x - power * 0.693359375F) + power * 2.12194440e-4F;
    Floats series = rest * (1.0F / 5040.0F) + 1.0F / 720.0F;
    series = series * rest + 1.0F / 120.0F;
    series = series * rest + 1.0F / 24.0F;
    series = series * rest + 1.0F / 6.0F;
    series = series * rest + 0.5F;
    series = series * rest + 1.0F;
    series = series * rest + 1.0F;
    Words bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127U) << 23;
    Floats scale;
    std::memcpy(&scale, &bits, sizeof scale);
    return scale * series; // times, not bits added to bits: so a NaN stays one
}

// exp; below -87.3 it is 0, above 88 it is that of 88. A NaN stays one.
inline Floats exponential(Floats x) {
    const Floats value = bounded_exponential(smaller(larger(x, all(-87.3F)), all(88.0F)));
    return x < -87.3F ? Floats{} : (x == x ? value : x);
}

// exp of what is not above 0, to 1e-7 + 4e-8 |x| of itself; below -87 it is that of -87, as good as nothing beside the 1
// that the largest of a softmax gives. A NaN stays one.
inline Floats decay(Floats x) {
    const Floats bounded = x < -87.0F ? all(-87.0F) : x;
#if HEADWAY_WIDTH == 16
    // 2^(n / 16) from a table, n whole, times a short series of what is left
    const Floats table = {1.0F,        1.04427378F, 1.09050773F, 1.13878863F, 1.18920712F, 1.24185781F,
                          1.29683955F, 1.35425555F, 1.41421356F, 1.47682615F, 1.54221083F, 1.61049033F,
                          1.68179283F, 1.75625216F, 1.83400809F, 1.91520656F};
    const Floats steps = bounded * 23.0831207F + 12582912.0F; // 1.5 x 2^23 leaves n in the lowest bits
    const Floats rest = bounded - (steps - 12582912.0F) * 0.0433216988F;
    const Floats series = ((rest * (1.0F / 6.0F) + 0.5F) * rest + 1.0F) * rest + 1.0F;
    Words bits;
    std::memcpy(&bits, &steps, sizeof bits);
    // all lanes are asked for: the form with a mask has nothing undefined, of which GCC 12 would warn
    const auto root = _mm512_maskz_permutexvar_ps(0xFFFF, reinterpret_cast<__m512i>(bits), reinterpret_cast<__m512>(table));
    Words scaled;
    std::memcpy(&scaled, &root, sizeof scaled);
    scaled += (bits & ~15U) << 19;
    Floats power;
    std::memcpy(&power, &scaled, sizeof power);
    return power * series;
#else
    return bounded_exponential(bounded);
#endif
}

} // namespace
} // namespace headway
