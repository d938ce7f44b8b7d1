// AVX2 with VNNI: 32 products of 8-bit numbers in one instruction, 16 registers.
#define HEADWAY_WIDTH 8
#include "simd.hpp"

namespace headway {
namespace {

constexpr int MOST_ROWS = 6;

struct Sums {
    __m256i half[2];
};
using Weights = Sums;
using Spread = __m256i;

inline Sums no_sums() { return {{_mm256_setzero_si256(), _mm256_setzero_si256()}}; }
inline Weights load_weights(const uint8_t *from) {
    const auto *halves = reinterpret_cast<const __m256i *>(from);
    return {{_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)}};
}
inline Spread spread(const int8_t *from) {
    int32_t numbers;
    std::memcpy(&numbers, from, sizeof numbers);
    return _mm256_set1_epi32(numbers);
}
inline void accumulate(Sums &sums, const Weights &weights, Spread numbers) {
    sums.half[0] = _mm256_dpbusd_avx_epi32(sums.half[0], weights.half[0], numbers);
    sums.half[1] = _mm256_dpbusd_avx_epi32(sums.half[1], weights.half[1], numbers);
}
inline Ints part(const Sums &sums, int index) { return reinterpret_cast<Ints>(sums.half[index]); }

} // namespace
} // namespace headway

#include "kernels_body.hpp"

namespace headway {
const Kernels &avx_vnni_kernels() {
    static constexpr Kernels kernels = table("avx_vnni");
    return kernels;
}
} // namespace headway
