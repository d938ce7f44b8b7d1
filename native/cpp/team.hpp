// A few threads that do parts of one piece of work together, many times a millisecond. Each begins with a part of its own
// and then takes what is left, so nobody waits for a thread that has no core just now.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace headway {

class Team {
  public:
    // ``size`` members, the caller among them; fewer where the system gives no more threads.
    explicit Team(int size);
    ~Team();
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    int size() const { return static_cast<int>(helpers_.size()) + 1; }

    // To be called in the midst of long work, on any member's thread: throws where the work is to end.
    void look() const {
        if (looker_) looker_();
    }
    void set_looker(std::function<void()> looker) { looker_ = std::move(looker); }

    // Calls ``work(begin, end, part)`` for parts of 0 ... count - 1, side by side; comes back when all are done. Parts
    // begin at multiples of ``grain``; there are at most ``size()``, and where they begin depends on nothing else. What
    // ``work`` throws on any thread is thrown here when all have ended: the first of several; the team can be used again.
    template <class Work> void share(int count, int grain, const Work &work) {
        const int grains = (count + grain - 1) / grain;
        const int parts = grains < size() ? grains : size();
        if (parts <= 1) {
            if (count > 0) work(0, count, 0);
            return;
        }
        const auto run_part = [&](int part) {
            const int begin = static_cast<int>(static_cast<long long>(grains) * part / parts) * grain;
            const int end = static_cast<int>(static_cast<long long>(grains) * (part + 1) / parts) * grain;
            work(begin, end < count ? end : count, part);
        };
        run({[](const void *what, int part) { (*static_cast<const decltype(run_part) *>(what))(part); }, &run_part}, parts);
    }

  private:
    // What is called for a part; a plain pointer, for a round must not need memory.
    struct Work {
        void (*call)(const void *what, int part) = nullptr;
        const void *what = nullptr;
    };

    void run(const Work &work, int parts);
    void help(int member);
    void take_parts(unsigned round, int member);
    void attempt(int part);
    void end();

    std::vector<std::thread> helpers_;
    std::function<void()> looker_;
    Work work_;
    std::atomic<bool> has_failed_{false};
    std::exception_ptr failure_; // of the member that set has_failed_
    std::atomic<unsigned> round_{0};   // rises with each piece of work
    std::atomic<uint64_t> untaken_{0}; // the round, and below it a bit for each part that nobody has taken
    std::atomic<int> missing_{0};      // parts that are not done
    std::atomic<bool> over_{false};
};

} // namespace headway
