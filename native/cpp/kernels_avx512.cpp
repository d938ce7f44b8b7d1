// AVX-512 with VNNI: 64 products of 8-bit numbers in one instruction. 32 registers hold 14 rows x 2 blocks of sums.
#define HEADWAY_WIDTH 16
#include "simd.hpp"

namespace headway {
namespace {

constexpr int MOST_ROWS = 14;

using Sums = __m512i;
using Weights = __m512i;
using Spread = __m512i;

inline Sums no_sums() { return _mm512_setzero_si512(); }
inline Weights load_weights(const uint8_t *from) { return _mm512_loadu_si512(from); }
inline Spread spread(const int8_t *from) {
    int32_t numbers;
    std::memcpy(&numbers, from, sizeof numbers);
    return _mm512_set1_epi32(numbers);
}
inline void accumulate(Sums &sums, Weights weights, Spread numbers) {
    sums = _mm512_dpbusd_epi32(sums, weights, numbers);
}
inline Ints part(Sums sums, int) { return reinterpret_cast<Ints>(sums); }

} // namespace
} // namespace headway

#include "kernels_body.hpp"

namespace headway {
const Kernels &avx512_kernels() {
    static constexpr Kernels kernels = table("avx512");
    return kernels;
}
} // namespace headway
