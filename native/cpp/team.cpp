#include "team.hpp"

#include <algorithm>
#include <bit>
#include <system_error>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headway {
namespace {

// A waiting thread looks again and again for some microseconds, for work comes at once; then it lets others run.
constexpr int LOOKS = 20000;

constexpr int MOST = 32; // members

inline void pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

} // namespace

Team::Team(int size) {
    size = std::min(size, MOST); // a bit for each part
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

void Team::run(const Work &work, int parts) {
    work_ = work;
    missing_.store(parts, std::memory_order_relaxed);
    const unsigned round = round_.load(std::memory_order_relaxed) + 1;
    untaken_.store(uint64_t{round} << 32 | ((uint64_t{1} << parts) - 1), std::memory_order_release);
    round_.store(round, std::memory_order_release);
    round_.notify_all();
    take_parts(round, 0);
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

// The member's own part, whose weights are in its cache, then any that is left. A part that is taken keeps the round from
// ending, so what stands in it stays.
void Team::take_parts(unsigned round, int member) {
    uint64_t seen = untaken_.load(std::memory_order_acquire);
    while (seen >> 32 == round) {
        const auto left = static_cast<uint32_t>(seen);
        if (left == 0) return;
        const int part = (left >> member & 1U) != 0 ? member : std::countr_zero(left);
        if (!untaken_.compare_exchange_weak(seen, seen & ~(uint64_t{1} << part), std::memory_order_acq_rel,
                                            std::memory_order_acquire))
            continue;
        attempt(part);
        if (missing_.fetch_sub(1, std::memory_order_acq_rel) == 1 && member != 0) missing_.notify_one();
        seen = untaken_.load(std::memory_order_acquire);
    }
}

void Team::attempt(int part) {
    try {
        work_.call(work_.what, part);
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
        take_parts(seen, member);
    }
}

} // namespace headway
