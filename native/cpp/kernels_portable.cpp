// For any processor: what C++ alone can say. The compiler makes of it what it can.
#define HEADWAY_WIDTH 4
#include "simd.hpp"

#include "kernels.hpp"

namespace headway {
namespace {

constexpr int MOST_ROWS = 4;

struct Sums {
    int32_t output[BLOCK];
};
struct Weights {
    const uint8_t *at;
};
struct Spread {
    const int8_t *at;
};

inline Sums no_sums() { return {}; }
inline Weights load_weights(const uint8_t *from) { return {from}; }
inline Spread spread(const int8_t *from) { return {from}; }
inline void accumulate(Sums &sums, Weights weights, Spread numbers) {
    for (int output = 0; output < BLOCK; ++output)
        for (int i = 0; i < GROUP; ++i)
            sums.output[output] += int32_t{weights.at[output * GROUP + i]} * int32_t{numbers.at[i]};
}
inline Ints part(const Sums &sums, int index) {
    Ints values;
    std::memcpy(&values, sums.output + index * WIDTH, sizeof values);
    return values;
}

} // namespace
} // namespace headway

#include "kernels_body.hpp"

namespace headway {
const Kernels &portable_kernels() {
    static constexpr Kernels kernels = table("portable");
    return kernels;
}
} // namespace headway
