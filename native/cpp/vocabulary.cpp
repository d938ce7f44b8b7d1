#include "vocabulary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headway {
namespace {

constexpr int ROWS = 70; // the most whose logits of one chunk are in the cache together
constexpr int FEW = 64;  // logits that are looked at together while there are too few to set a threshold

constexpr float LOWEST = -std::numeric_limits<float>::infinity();

} // namespace

Vocabulary::Vocabulary(const Matrix &output, Arithmetic &arithmetic)
    : output_(output), arithmetic_(arithmetic), chunks_((output.blocks() + CHUNK_BLOCKS - 1) / CHUNK_BLOCKS),
      members_(static_cast<size_t>(arithmetic.team.size())) {
    for (Member &member : members_) {
        member.logits.resize(static_cast<size_t>(ROWS) * CHUNK);
        member.places.resize(CHUNK);
    }
}

void Vocabulary::best(const FloatRows &rows, const std::vector<Ask> &asks, std::vector<std::vector<Next>> &nexts) {
    const size_t count = asks.size();
    const auto chunks = static_cast<size_t>(chunks_);
    peak_.resize(count * chunks);
    sum_.resize(count * chunks);
    only_.resize(count);
    for (Member &member : members_) {
        member.best.resize(count);
        for (auto &best : member.best) best.clear();
    }
    arithmetic_.prepare(output_, rows);
    const int parts = (rows.count + ROWS - 1) / ROWS;
    arithmetic_.team.share(chunks_, 1, [&](int begin, int end, int who) {
        for (int chunk = begin; chunk < end; ++chunk)
            for (int part = 0; part < parts; ++part) {
                const int first = rows.count * part / parts, last = rows.count * (part + 1) / parts;
                look(members_[static_cast<size_t>(who)], asks, first, last - first, chunk);
            }
    });
    nexts.resize(count);
    for (size_t row = 0; row < count; ++row) {
        nexts[row].clear();
        const float *peaks = &peak_[row * chunks];
        const float peak = *std::max_element(peaks, peaks + chunks);
        double total = 0.0;
        for (size_t chunk = 0; chunk < chunks; ++chunk)
            total += static_cast<double>(sum_[row * chunks + chunk]) * std::exp(static_cast<double>(peaks[chunk]) - static_cast<double>(peak));
        const auto log_total = static_cast<float>(std::log(total));
        if (!std::isfinite(log_total) || !std::isfinite(peak)) continue;
        if (asks[row].only >= 0) {
            nexts[row].push_back({(only_[row] - peak) - log_total, asks[row].only});
            continue;
        }
        std::vector<Logit> all;
        for (const Member &member : members_) all.insert(all.end(), member.best[row].begin(), member.best[row].end());
        std::stable_sort(all.begin(), all.end(), [](const Logit &one, const Logit &other) { return one.value > other.value; });
        for (size_t place = 0; place < std::min(all.size(), static_cast<size_t>(asks[row].wanted)); ++place)
            nexts[row].push_back({(all[place].value - peak) - log_total, all[place].token});
    }
}

void Vocabulary::look(Member &member, const std::vector<Ask> &asks, int first_row, int count, int chunk) {
    const int begin = chunk * CHUNK_BLOCKS;
    const int end = std::min(begin + CHUNK_BLOCKS, output_.blocks());
    Sink sink{member.logits.data(), CHUNK};
    sink.first_block = begin;
    arithmetic_.multiply_prepared(output_, first_row, count, begin, end, sink);
    const int first_token = begin * BLOCK;
    const int size = std::min(end * BLOCK, output_.outputs) - first_token;
    for (int i = 0; i < count; ++i) {
        const auto row = static_cast<size_t>(first_row + i);
        const Ask &ask = asks[row];
        const float *logits = member.logits.data() + static_cast<size_t>(i) * CHUNK;
        std::vector<Logit> &best = member.best[row];
        const size_t place = row * static_cast<size_t>(chunks_) + static_cast<size_t>(chunk);
        arithmetic_.kernels.scan(logits, size, &peak_[place], &sum_[place]);
        if (ask.only >= 0) {
            if (ask.only >= first_token && ask.only < first_token + size) only_[row] = logits[ask.only - first_token];
            continue;
        }
        // The first few logits of all set a threshold that most of the others are below.
        const bool is_full = best.size() >= static_cast<size_t>(ask.wanted);
        if (is_full && !(peak_[place] > best.back().value)) continue;
        const int few = is_full ? size : FEW;
        for (int first = 0; first < size; first += few)
            keep(member, row, ask, logits, first_token, first, std::min(few, size - first));
    }
}

// Looks at ``size`` logits of a chunk from ``first`` on.
void Vocabulary::keep(Member &member, size_t row, const Ask &ask, const float *logits, int first_token, int first,
                      int size) {
    std::vector<Logit> &best = member.best[row];
    const auto most = static_cast<size_t>(ask.wanted);
    const float threshold = best.size() >= most ? best.back().value : LOWEST;
    const int found = arithmetic_.kernels.above(logits + first, size, threshold, member.places.data());
    for (int i = 0; i < found; ++i) {
        const int at = first + member.places[static_cast<size_t>(i)];
        const Logit logit{logits[at], first_token + at};
        if (best.size() == most && !(logit.value > best.back().value)) continue;
        if (ask.beam->forbids(ask.row, logit.token)) continue;
        if (best.size() == most) best.pop_back();
        const auto after = std::upper_bound(best.begin(), best.end(), logit,
                                            [](const Logit &one, const Logit &other) { return one.value > other.value; });
        best.insert(after, logit);
    }
}

} // namespace headway
