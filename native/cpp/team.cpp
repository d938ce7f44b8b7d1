#include "team.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headway {
namespace {

// A waiting thread looks again and again for some microseconds, for work comes at once; then it lets others run.
constexpr int LOOKS = 20000;

inline void pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

} // namespace

Team::Team(int size) {
    for (int member = 1; member < size; ++member) helpers_.emplace_back([this, member] { help(member); });
}

Team::~Team() {
    over_.store(true);
    round_.fetch_add(1);
    round_.notify_all();
    for (std::thread &helper : helpers_) helper.join();
}

void Team::run(const std::function<void(int)> &part) {
    part_ = &part;
    missing_.store(static_cast<int>(helpers_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    part(0);
    for (int looks = 0; missing_.load(std::memory_order_acquire) != 0; ++looks) {
        pause();
        if (looks > LOOKS) std::this_thread::yield();
    }
}

void Team::help(int member) {
    unsigned seen = 0;
    while (true) {
        for (int looks = 0; round_.load(std::memory_order_acquire) == seen; ++looks) {
            pause();
            if (looks > LOOKS) round_.wait(seen, std::memory_order_acquire);
        }
        seen = round_.load(std::memory_order_acquire);
        if (over_.load()) return;
        (*part_)(member);
        missing_.fetch_sub(1, std::memory_order_release);
    }
}

} // namespace headway
