// A few threads that do parts of one piece of work together, many times a millisecond.
#pragma once

#include <atomic>
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

    // Calls ``work(begin, end, member)`` for parts of 0 ... count - 1, side by side; comes back when all are done. Parts
    // begin at multiples of ``grain``. What ``work`` throws on any thread is thrown here when all have ended: the first
    // of several; the team can be used again.
    template <class Work> void share(int count, int grain, const Work &work) {
        const int grains = (count + grain - 1) / grain;
        const int members = grains < size() ? grains : size();
        if (members <= 1) {
            if (count > 0) work(0, count, 0);
            return;
        }
        const auto part = [&](int member) {
            if (member >= members) return;
            const int begin = static_cast<int>(static_cast<long long>(grains) * member / members) * grain;
            const int end = static_cast<int>(static_cast<long long>(grains) * (member + 1) / members) * grain;
            work(begin, end < count ? end : count, member);
        };
        run({[](const void *what, int member) { (*static_cast<const decltype(part) *>(what))(member); }, &part});
    }

  private:
    // What a member calls; a plain pointer, for a round must not need memory.
    struct Part {
        void (*call)(const void *what, int member) = nullptr;
        const void *what = nullptr;
    };

    void run(const Part &part);
    void help(int member);
    void attempt(int member);
    void end();

    std::vector<std::thread> helpers_;
    std::function<void()> looker_;
    Part part_;
    std::atomic<bool> has_failed_{false};
    std::exception_ptr failure_; // of the member that set has_failed_
    std::atomic<unsigned> round_{0}; // rises with each piece of work
    std::atomic<int> missing_{0};    // helpers that have not done theirs
    std::atomic<bool> over_{false};
};

} // namespace headway
