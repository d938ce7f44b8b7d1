#include "kernels.hpp"

#include <cstring>

#ifdef HEADWAY_X86
#include <cpuid.h>
#endif

namespace headway {
namespace {

#ifdef HEADWAY_X86
bool has_avx_vnni() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & (1U << 4)) != 0;
}
#endif

struct Choice {
    const Kernels *kernels;
    bool is_possible;
};

} // namespace

const Kernels *find_kernels(const char *name) {
    const bool any = std::strcmp(name, "auto") == 0;
#ifdef HEADWAY_X86
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512vnni");
    const Choice choices[] = {{&avx512_kernels(), avx512},
                              {&avx_vnni_kernels(), avx2 && has_avx_vnni()},
                              {&avx2_kernels(), avx2},
                              {&portable_kernels(), true}};
#else
    const Choice choices[] = {{&portable_kernels(), true}};
#endif
    for (const Choice &choice : choices)
        if (choice.is_possible && (any || std::strcmp(name, choice.kernels->name) == 0)) return choice.kernels;
    return nullptr;
}

} // namespace headway
