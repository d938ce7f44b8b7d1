// Many sentences with one model: replicas that each take waiting sentences as their own leave, on a bounded number of
// threads. Calls from several threads wait for one another where they would need more.
#pragma once

#include "decoder.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stdexcept>

namespace headway {

struct Cancelled : std::runtime_error {
    Cancelled() : std::runtime_error("cancelled") {}
};

// How a call ends before its time: somebody sets it, and the call throws Cancelled.
using Cancel = std::atomic<bool>;

// Called on the thread of the caller alone, some times a second; what it throws ends the call.
using Poll = std::function<void()>;

class Engine {
  public:
    // ``threads``: the most that compute at once. ``shortlist``: what searches are limited to, or null; its vocabularies
    // are the model's. Throws std::invalid_argument for kernels that the processor lacks and for threads outside 1 to 1024.
    Engine(std::shared_ptr<const Model> model, const std::string &kernels, int threads,
           std::shared_ptr<const Shortlist> shortlist);
    ~Engine();
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    // The hypotheses of each request, best first; none where the model gives no finite probability. ``rows``: hypotheses
    // that a replica works on side by side. A result does not depend on the other requests, on threads or on rows.
    std::vector<std::vector<Hypothesis>> search(const std::vector<Request> &requests, const Settings &settings,
                                                int rows, const Cancel &cancel, const Poll &poll);
    std::vector<std::vector<float>> score(const std::vector<Ids> &sources, const std::vector<Ids> &targets,
                                          const Cancel &cancel, const Poll &poll);
    std::vector<Attention> attend(const std::vector<Ids> &sources, const std::vector<Ids> &targets,
                                  const Cancel &cancel, const Poll &poll);

    const char *kernels() const { return kernels_->name; }
    int threads() const { return threads_; }
    bool has_shortlist() const { return shortlist_ != nullptr; }

  private:
    struct Replica {
        Replica(const Model &model, const Kernels &kernels, int threads)
            : team(threads), encoder(model, kernels, team), decoder(model, kernels, team) {}
        Team team;
        Encoder encoder;
        Decoder decoder;
    };
    class Loan;
    class Watch;
    struct Work;

    // What calls share. A forked process makes one of its own: the parent's threads are not there, and whoever held the
    // mutex will never let it go.
    struct Pool {
        explicit Pool(int threads);
        const long process;
        std::mutex mutex;
        std::condition_variable freed;
        int free;                         // threads that nobody holds
        std::list<const Loan *> waiting;  // first come, first served: many narrow calls never starve a wide one
        std::vector<std::unique_ptr<Replica>> narrow, wide; // of one thread, of all; those that nobody holds
    };

    Pool &pool();
    void search_on(Replica &replica, Work &work);
    std::unique_ptr<Sentence> sentence(const Request &request, const Settings &settings, Memory memory) const;
    template <class Take> void spread(int parts, Watch &watch, const Take &take);
    template <class Result, class Run>
    std::vector<Result> forced(const std::vector<Ids> &sources, const std::vector<Ids> &targets, Watch &watch,
                               const Run &run);

    std::shared_ptr<const Model> model_;
    std::shared_ptr<const Shortlist> shortlist_;
    const Kernels *kernels_;
    int threads_;
    std::atomic<Pool *> pool_;
};

} // namespace headway
