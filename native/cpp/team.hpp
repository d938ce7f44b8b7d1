// A few threads that do parts of one piece of work together, many times a millisecond.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace headway {

class Team {
  public:
    explicit Team(int size);
    ~Team();
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    int size() const { return static_cast<int>(helpers_.size()) + 1; }

    // Calls ``work(begin, end, member)`` for parts of 0 ... count - 1, side by side; comes back when all are done. Parts
    // begin at multiples of ``grain``. ``work`` must not throw.
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
        run(part);
    }

  private:
    void run(const std::function<void(int)> &part);
    void help(int member);

    std::vector<std::thread> helpers_;
    const std::function<void(int)> *part_ = nullptr;
    std::atomic<unsigned> round_{0}; // rises with each piece of work
    std::atomic<int> missing_{0};    // helpers that have not done theirs
    std::atomic<bool> over_{false};
};

} // namespace headway
