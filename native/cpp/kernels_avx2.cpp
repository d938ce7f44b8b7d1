// AVX2. Its product of 8-bit numbers adds two of them in 16 bits and cuts what does not fit, so numbers are widened to
// 16 bits first: the sums are the same as everywhere.
#define HEADWAY_WIDTH 8
#include "simd.hpp"

namespace headway {
namespace {

constexpr int MOST_ROWS = 3;

// Each vector has two partial sums of each of four outputs.
struct Sums {
    __m256i quarter[4];
};
using Weights = Sums;
using Spread = __m256i;

inline Sums no_sums() {
    const __m256i zero = _mm256_setzero_si256();
    return {{zero, zero, zero, zero}};
}
inline Weights load_weights(const uint8_t *from) {
    const auto *quarters = reinterpret_cast<const __m128i *>(from);
    Weights weights;
    for (int i = 0; i < 4; ++i) weights.quarter[i] = _mm256_cvtepu8_epi16(_mm_loadu_si128(quarters + i));
    return weights;
}
inline Spread spread(const int8_t *from) {
    int32_t numbers;
    std::memcpy(&numbers, from, sizeof numbers);
    return _mm256_cvtepi8_epi16(_mm_set1_epi32(numbers));
}
inline void accumulate(Sums &sums, const Weights &weights, Spread numbers) {
    for (int i = 0; i < 4; ++i)
        sums.quarter[i] = _mm256_add_epi32(sums.quarter[i], _mm256_madd_epi16(weights.quarter[i], numbers));
}
inline Ints part(const Sums &sums, int index) {
    // pairs of neighbours added: outputs 0 1 4 5 2 3 6 7, put in order after
    const __m256i pairs = _mm256_hadd_epi32(sums.quarter[2 * index], sums.quarter[2 * index + 1]);
    return reinterpret_cast<Ints>(_mm256_permute4x64_epi64(pairs, 0xD8));
}

} // namespace
} // namespace headway

#include "kernels_body.hpp"

namespace headway {
const Kernels &avx2_kernels() {
    static constexpr Kernels kernels = table("avx2");
    return kernels;
}
} // namespace headway
