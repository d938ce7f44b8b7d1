#include "team.hpp"

#include <system_error>
#include <utility>

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
    helpers_.reserve(size > 1 ? static_cast<size_t>(size - 1) : 0);
    try {
        for (int member = 1; member < size; ++member) helpers_.emplace_back([this, member] { help(member); });
    } catch (const std::system_error &) { // no more threads: fewer do, and the results are the same
    } catch (...) {
        end();
        throw;
    }
}

Team::~Team() { end(); }

void Team::end() {
    over_.store(true);
    round_.fetch_add(1);
    round_.notify_all();
    for (std::thread &helper : helpers_) helper.join();
}

void Team::run(const Part &part) {
    part_ = part;
    missing_.store(static_cast<int>(helpers_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    attempt(0);
    // The others read what stands on this thread's stack: nobody leaves before they have ended.
    for (int looks = 0;; ++looks) {
        const int missing = missing_.load(std::memory_order_acquire);
        if (missing == 0) break;
        pause();
        // whoever is missing may be waiting for this very core
        if (looks > LOOKS) missing_.wait(missing, std::memory_order_acquire);
    }
    if (!has_failed_.load(std::memory_order_relaxed)) return;
    has_failed_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Team::attempt(int member) {
    try {
        part_.call(part_.what, member);
    } catch (...) {
        if (!has_failed_.exchange(true)) failure_ = std::current_exception();
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
        attempt(member);
        if (missing_.fetch_sub(1, std::memory_order_release) == 1) missing_.notify_one();
    }
}

} // namespace headway
