#include "engine.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>

namespace headway {
namespace {

constexpr size_t SCORED_TOKENS = 2048; // target tokens of one forced pass, or one target if that is longer
constexpr size_t ENCODED_TOKENS = 4096; // source tokens of one encoder pass, or one source if that is longer

std::vector<size_t> longest_first(size_t count, const std::function<size_t(size_t)> &length) {
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t one, size_t other) { return length(one) > length(other); });
    return order;
}

} // namespace

// A replica, and the threads that it computes with, for the time of a call.
class Engine::Loan {
  public:
    Loan(Engine &engine, bool is_wide) : engine_(engine), is_wide_(is_wide), threads_(is_wide ? engine.threads_ : 1) {
        std::unique_lock lock(engine_.mutex_);
        const unsigned long ticket = engine_.tickets_++; // first come, first served: many narrow calls never starve a wide one
        engine_.freed_.wait(lock, [&] { return engine_.served_ == ticket && engine_.free_ >= threads_; });
        ++engine_.served_;
        engine_.free_ -= threads_;
        auto &idle = is_wide_ ? engine_.wide_ : engine_.narrow_;
        if (!idle.empty()) {
            replica_ = std::move(idle.back());
            idle.pop_back();
        }
        lock.unlock();
        engine_.freed_.notify_all();
        try {
            if (!replica_) replica_ = std::make_unique<Replica>(*engine_.model_, *engine_.kernels_, threads_);
        } catch (...) {
            give_back();
            throw;
        }
    }
    ~Loan() { give_back(); }
    Loan(const Loan &) = delete;
    Loan &operator=(const Loan &) = delete;

    Replica &operator*() { return *replica_; }

  private:
    void give_back() {
        {
            const std::lock_guard lock(engine_.mutex_);
            engine_.free_ += threads_;
            if (replica_) (is_wide_ ? engine_.wide_ : engine_.narrow_).push_back(std::move(replica_));
        }
        engine_.freed_.notify_all();
    }

    Engine &engine_;
    bool is_wide_;
    int threads_;
    std::unique_ptr<Replica> replica_;
};

// Looked at between two steps: whether a call is to end.
class Engine::Watch {
  public:
    Watch(const Cancel &cancel, const Poll &poll) : cancel_(cancel), poll_(poll) {}

    void look() {
        if (cancel_) throw Cancelled();
        if (std::this_thread::get_id() != caller_) return;
        const auto now = std::chrono::steady_clock::now();
        if (now - polled_ < std::chrono::milliseconds(50)) return;
        polled_ = now;
        poll_();
    }

  private:
    const Cancel &cancel_;
    const Poll &poll_;
    const std::thread::id caller_ = std::this_thread::get_id();
    std::chrono::steady_clock::time_point polled_ = std::chrono::steady_clock::now();
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
    std::atomic<bool> has_failed{false};
};

Engine::Engine(std::shared_ptr<const Model> model, const std::string &kernels, int threads,
               std::shared_ptr<const Shortlist> shortlist)
    : model_(std::move(model)), shortlist_(std::move(shortlist)), kernels_(find_kernels(kernels.c_str())), threads_(std::max(threads, 1)),
      free_(std::max(threads, 1)) {
    if (kernels_ == nullptr)
        throw std::invalid_argument("there are no kernels named " + kernels + ", or this processor lacks their instructions");
}

// Calls ``take`` on so many threads, the caller's among them; the first exception is thrown when all have ended.
template <class Take> void Engine::spread(int parts, const Take &take) {
    std::mutex mutex;
    std::exception_ptr failure;
    const auto run = [&] {
        try {
            take();
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    try {
        for (int part = 1; part < parts; ++part) others.emplace_back(run);
    } catch (const std::system_error &) { // no more threads: fewer do
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
    spread(parts, [&] {
        try {
            Loan replica(*this, is_wide);
            search_on(*replica, work);
        } catch (...) {
            work.has_failed = true;
            throw;
        }
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
        if (work.has_failed) return; // another replica says why
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
    spread(is_wide ? 1 : threads_, [&] {
        Loan replica(*this, is_wide);
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
