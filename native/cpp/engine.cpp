#include "engine.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace headway {
namespace {

constexpr size_t SCORED_TOKENS = 2048; // target tokens of one forced pass, or one target if that is longer
constexpr size_t ENCODED_TOKENS = 4096; // source tokens with which an encoder pass takes no more sources
constexpr int MOST_THREADS = 1024;
constexpr std::chrono::milliseconds PATIENCE(50); // between two looks at whether a call is to end

long process_id() {
#if defined(__unix__) || defined(__APPLE__)
    return static_cast<long>(getpid());
#else
    return 0; // no fork
#endif
}

std::vector<size_t> longest_first(size_t count, const std::function<size_t(size_t)> &length) {
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t one, size_t other) { return length(one) > length(other); });
    return order;
}

} // namespace

// Looked at between two steps, on any thread of a call: whether the call is to end.
class Engine::Watch {
  public:
    Watch(const Cancel &cancel, const Poll &poll) : cancel_(cancel), poll_(poll) {}

    void look() {
        if (cancel_ || has_failed_) throw Cancelled();
        if (std::this_thread::get_id() != caller_) return;
        const auto now = std::chrono::steady_clock::now();
        if (now - polled_ < PATIENCE) return;
        polled_ = now;
        poll_();
    }

    // One thread of the call has failed and will say why: the others are to end.
    void fail() { has_failed_ = true; }

    // One thread has found nothing left to take: those that still wait to begin are not needed.
    void end() { has_ended_ = true; }
    bool has_ended() const { return has_ended_; }

  private:
    const Cancel &cancel_;
    const Poll &poll_;
    const std::thread::id caller_ = std::this_thread::get_id();
    std::chrono::steady_clock::time_point polled_ = std::chrono::steady_clock::now();
    std::atomic<bool> has_failed_{false};
    std::atomic<bool> has_ended_{false};
};

// A replica, and the threads that it computes with, for the time of a call; none where the call's other threads have
// taken everything while this one waited, for a call must not wait for others' work when its own is done.
class Engine::Loan {
  public:
    Loan(Engine &engine, bool is_wide, Watch &watch)
        : pool_(engine.pool()), is_wide_(is_wide), threads_(is_wide ? engine.threads_ : 1) {
        if (!wait(watch)) return;
        try {
            if (!replica_) replica_ = std::make_unique<Replica>(*engine.model_, *engine.kernels_, threads_);
            replica_->team.set_looker([&watch] { watch.look(); });
        } catch (...) {
            replica_.reset();
            give_back();
            throw;
        }
    }
    ~Loan() {
        if (!replica_) return;
        // What an exception has left half done is made anew when it is needed.
        if (std::uncaught_exceptions() > exceptions_) replica_.reset();
        if (replica_) replica_->team.set_looker(nullptr);
        give_back();
    }
    Loan(const Loan &) = delete;
    Loan &operator=(const Loan &) = delete;

    explicit operator bool() const { return replica_ != nullptr; }
    Replica &operator*() { return *replica_; }

  private:
    // Whether the threads were given.
    bool wait(Watch &watch) {
        std::unique_lock lock(pool_.mutex);
        const auto own = pool_.waiting.insert(pool_.waiting.end(), this);
        try {
            while (!watch.has_ended() && (pool_.waiting.front() != this || pool_.free < threads_)) {
                pool_.freed.wait_for(lock, PATIENCE);
                lock.unlock();
                watch.look();
                lock.lock();
            }
        } catch (...) {
            if (!lock.owns_lock()) lock.lock();
            pool_.waiting.erase(own);
            lock.unlock();
            pool_.freed.notify_all();
            throw;
        }
        pool_.waiting.erase(own);
        const bool is_given = !watch.has_ended();
        if (is_given) take();
        lock.unlock();
        pool_.freed.notify_all();
        return is_given;
    }

    void take() {
        pool_.free -= threads_;
        auto &idle = is_wide_ ? pool_.wide : pool_.narrow;
        if (idle.empty()) return;
        replica_ = std::move(idle.back());
        idle.pop_back();
    }

    void give_back() {
        {
            const std::lock_guard lock(pool_.mutex);
            pool_.free += threads_;
            if (replica_) (is_wide_ ? pool_.wide : pool_.narrow).push_back(std::move(replica_)); // there is room: Pool
        }
        pool_.freed.notify_all();
    }

    Pool &pool_;
    bool is_wide_;
    int threads_;
    int exceptions_ = std::uncaught_exceptions();
    std::unique_ptr<Replica> replica_;
};

// What the replicas of one call share.
struct Engine::Work {
    const std::vector<Request> &requests;
    const Settings &settings;
    const std::vector<size_t> order;
    int rows;
    int parts; // replicas that take part
    Watch &watch;
    std::vector<std::vector<Hypothesis>> results;
    std::atomic<size_t> next{0};
};

Engine::Pool::Pool(int threads) : process(process_id()), free(threads) {
    narrow.reserve(static_cast<size_t>(threads));
    wide.reserve(1);
}

Engine::Engine(std::shared_ptr<const Model> model, const std::string &kernels, int threads,
               std::shared_ptr<const Shortlist> shortlist)
    : model_(std::move(model)), shortlist_(std::move(shortlist)), kernels_(find_kernels(kernels.c_str())), threads_(threads),
      pool_(nullptr) {
    if (kernels_ == nullptr)
        throw std::invalid_argument("there are no kernels named " + kernels + ", or this processor lacks their instructions");
    if (threads < 1 || threads > MOST_THREADS)
        throw std::invalid_argument("threads are " + std::to_string(threads) + "; wanted 1 to " + std::to_string(MOST_THREADS));
    pool_ = new Pool(threads_);
}

Engine::~Engine() {
    Pool *pool = pool_.load();
    if (pool->process == process_id()) delete pool; // else it is left: it has threads that cannot be joined here
}

Engine::Pool &Engine::pool() {
    Pool *found = pool_.load();
    if (found->process == process_id()) return *found;
    auto own = std::make_unique<Pool>(threads_);
    if (pool_.compare_exchange_strong(found, own.get())) return *own.release();
    return *found; // another thread has been first
}

// Calls ``take`` on so many threads, the caller's among them; the first exception ends the others and is thrown when
// all have ended.
template <class Take> void Engine::spread(int parts, Watch &watch, const Take &take) {
    std::mutex mutex;
    std::exception_ptr failure;
    const auto run = [&] {
        try {
            take();
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
            watch.fail();
        }
    };
    std::vector<std::thread> others;
    others.reserve(static_cast<size_t>(parts - 1));
    try {
        for (int part = 1; part < parts; ++part) others.emplace_back(run);
    } catch (const std::exception &) { // no more threads, or no memory for one: fewer do
    }
    run();
    for (std::thread &other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

std::vector<std::vector<Hypothesis>> Engine::search(const std::vector<Request> &requests, const Settings &settings,
                                                    int rows, const Cancel &cancel, const Poll &poll) {
    Watch watch(cancel, poll);
    // Enough sentences keep every thread busy by itself; few are computed by all threads together.
    const bool is_wide = threads_ > 1 && requests.size() < 2 * static_cast<size_t>(threads_);
    const int parts = is_wide ? 1 : threads_;
    Work work{requests, settings,
              longest_first(requests.size(), [&](size_t place) { return requests[place].source.size(); }),
              std::max(rows, settings.beam), parts, watch, std::vector<std::vector<Hypothesis>>(requests.size())};
    spread(parts, watch, [&] {
        Loan replica(*this, is_wide, watch);
        if (!replica) return;
        search_on(*replica, work);
        watch.end();
    });
    return std::move(work.results);
}

void Engine::search_on(Replica &replica, Work &work) {
    std::vector<std::unique_ptr<Sentence>> sentences;
    std::vector<size_t> places;
    // No replica takes so many that another would have none.
    const auto share = (work.requests.size() + static_cast<size_t>(work.parts) - 1) / static_cast<size_t>(work.parts);
    const size_t room = std::max<size_t>(std::min(static_cast<size_t>(work.rows / work.settings.beam), share), 1);
    while (true) {
        work.watch.look();
        // Sentences are taken in groups, so that the encoder's products are large too.
        if (sentences.size() + std::max<size_t>(room / 4, 1) <= room) {
            std::vector<const Ids *> sources;
            size_t tokens = 0;
            while (sentences.size() + sources.size() < room && (sources.empty() || tokens < ENCODED_TOKENS)) {
                const size_t next = work.next.fetch_add(1);
                if (next >= work.order.size()) break;
                places.push_back(work.order[next]);
                sources.push_back(&work.requests[work.order[next]].source);
                tokens += sources.back()->size();
            }
            if (!sources.empty()) {
                std::vector<Memory> memories = replica.encoder.encode(sources);
                for (Memory &memory : memories)
                    sentences.push_back(sentence(work.requests[places[sentences.size()]], work.settings, std::move(memory)));
            }
        }
        if (sentences.empty()) return;
        std::vector<Sentence *> under_way;
        for (const auto &sentence : sentences) under_way.push_back(sentence.get());
        replica.decoder.step(under_way);
        size_t kept = 0;
        for (size_t i = 0; i < sentences.size(); ++i) {
            if (sentences[i]->beam.is_over()) {
                work.results[places[i]] = sentences[i]->beam.take();
                continue;
            }
            sentences[kept] = std::move(sentences[i]);
            places[kept++] = places[i];
        }
        sentences.resize(kept);
        places.resize(kept);
    }
}

std::unique_ptr<Sentence> Engine::sentence(const Request &request, const Settings &settings, Memory memory) const {
    std::unique_ptr<const Selection> selection = shortlist_ ? shortlist_->select(request, model_->output) : nullptr;
    return std::make_unique<Sentence>(request, settings, std::move(memory), *model_, std::move(selection));
}

template <class Result, class Run>
std::vector<Result> Engine::forced(const std::vector<Ids> &sources, const std::vector<Ids> &targets,
                                   Watch &watch, const Run &run) {
    const std::vector<size_t> order = longest_first(targets.size(), [&](size_t place) { return targets[place].size(); });
    std::vector<std::vector<size_t>> groups;
    size_t tokens = 0;
    for (const size_t place : order) {
        const size_t own = std::max(targets[place].size(), sources[place].size());
        if (groups.empty() || tokens + own > SCORED_TOKENS) {
            groups.emplace_back();
            tokens = 0;
        }
        groups.back().push_back(place);
        tokens += own;
    }
    std::vector<Result> results(targets.size());
    std::atomic<size_t> next{0};
    const bool is_wide = threads_ > 1 && groups.size() < static_cast<size_t>(threads_);
    spread(is_wide ? 1 : threads_, watch, [&] {
        Loan replica(*this, is_wide, watch);
        if (!replica) return;
        for (size_t group = next++; group < groups.size(); group = next++) {
            watch.look();
            std::vector<const Ids *> own;
            for (const size_t place : groups[group]) own.push_back(&sources[place]);
            std::vector<Memory> memories = (*replica).encoder.encode(own);
            std::vector<Forced> forced;
            for (size_t i = 0; i < memories.size(); ++i)
                forced.push_back({&targets[groups[group][i]], std::move(memories[i])});
            std::vector<Result> found = run((*replica).decoder, forced);
            for (size_t i = 0; i < found.size(); ++i) results[groups[group][i]] = std::move(found[i]);
        }
        watch.end();
    });
    return results;
}

std::vector<std::vector<float>> Engine::score(const std::vector<Ids> &sources, const std::vector<Ids> &targets,
                                              const Cancel &cancel, const Poll &poll) {
    Watch watch(cancel, poll);
    return forced<std::vector<float>>(sources, targets, watch, [](Decoder &decoder, const std::vector<Forced> &targets) {
        return decoder.score(targets);
    });
}

std::vector<Attention> Engine::attend(const std::vector<Ids> &sources, const std::vector<Ids> &targets,
                                      const Cancel &cancel, const Poll &poll) {
    Watch watch(cancel, poll);
    return forced<Attention>(sources, targets, watch, [](Decoder &decoder, const std::vector<Forced> &targets) {
        return decoder.attend(targets);
    });
}

} // namespace headway
