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
    : output_(output), arithmetic_(arithmetic), members_(static_cast<size_t>(arithmetic.team.size())) {
    for (Member &member : members_) {
        member.logits.resize(static_cast<size_t>(ROWS) * CHUNK);
        member.places.resize(CHUNK);
    }
}

void Vocabulary::best(const FloatRows &rows, const std::vector<Ask> &asks, std::vector<std::vector<Next>> &nexts) {
    divide(asks);
    only_.assign(asks.size(), LOWEST);
    for (Member &member : members_) {
        member.best.resize(asks.size());
        for (auto &best : member.best) best.clear();
    }
    arithmetic_.prepare(output_, rows);
    arithmetic_.team.share(static_cast<int>(pieces_.size()), 1, [&](int begin, int end, int who) {
        for (int piece = begin; piece < end; ++piece) look(members_[static_cast<size_t>(who)], asks, pieces_[static_cast<size_t>(piece)]);
    });
    nexts.resize(asks.size());
    for (const Part &part : parts_)
        for (int row = part.first_row; row < part.first_row + part.count; ++row)
            collect(part, row, asks[static_cast<size_t>(row)], nexts[static_cast<size_t>(row)]);
}

// Which rows are looked at together, and room for what is found of them.
void Vocabulary::divide(const std::vector<Ask> &asks) {
    parts_.clear();
    pieces_.clear();
    size_t places = 0;
    for (size_t row = 0; row < asks.size();) {
        const Selection *selection = asks[row].selection;
        const size_t first = row;
        while (row < asks.size() && asks[row].selection == selection) ++row;
        const bool is_whole = selection == nullptr;
        const Matrix &matrix = is_whole ? output_ : selection->matrix();
        const int chunks = (matrix.blocks() + CHUNK_BLOCKS - 1) / CHUNK_BLOCKS;
        for (int chunk = 0; chunk < chunks; ++chunk) pieces_.push_back({static_cast<int>(parts_.size()), chunk});
        parts_.push_back({&matrix, is_whole ? nullptr : selection->tokens().data(), static_cast<int>(first),
                          static_cast<int>(row - first), places, chunks});
        places += (row - first) * static_cast<size_t>(chunks);
    }
    peak_.resize(places);
    sum_.resize(places);
}

void Vocabulary::look(Member &member, const std::vector<Ask> &asks, Piece piece) {
    const Part &part = parts_[static_cast<size_t>(piece.part)];
    const int times = (part.count + ROWS - 1) / ROWS;
    for (int time = 0, first = 0; time < times; ++time) {
        const int count = (part.count - first + times - time - 1) / (times - time);
        look(member, asks, part, part.first_row + first, count, piece.chunk);
        first += count;
    }
}

void Vocabulary::look(Member &member, const std::vector<Ask> &asks, const Part &part, int first_row, int count, int chunk) {
    const int begin = chunk * CHUNK_BLOCKS;
    const int end = std::min(begin + CHUNK_BLOCKS, part.matrix->blocks());
    Sink sink{member.logits.data(), CHUNK};
    sink.first_block = begin;
    arithmetic_.multiply_prepared(*part.matrix, first_row, count, begin, end, sink);
    const int first_output = begin * BLOCK;
    const int size = std::min(end * BLOCK, part.matrix->outputs) - first_output;
    for (int i = 0; i < count; ++i) {
        const auto row = static_cast<size_t>(first_row + i);
        const Ask &ask = asks[row];
        const float *logits = member.logits.data() + static_cast<size_t>(i) * CHUNK;
        std::vector<Logit> &best = member.best[row];
        const size_t place = part.place(first_row + i, chunk);
        arithmetic_.kernels.scan(logits, size, &peak_[place], &sum_[place]);
        if (ask.only >= 0) {
            const int only = part.output(ask.only) - first_output;
            if (only >= 0 && only < size) only_[row] = logits[only];
            continue;
        }
        // The first few logits of all set a threshold that most of the others are below.
        const bool is_full = best.size() >= static_cast<size_t>(ask.wanted);
        if (is_full && !(peak_[place] > best.back().value)) continue;
        const int few = is_full ? size : FEW;
        for (int first = 0; first < size; first += few)
            keep(member, part, row, ask, logits + first, first_output + first, std::min(few, size - first));
    }
}

// Looks at ``size`` logits, of the outputs from ``first_output`` on.
void Vocabulary::keep(Member &member, const Part &part, size_t row, const Ask &ask, const float *logits, int first_output,
                      int size) {
    std::vector<Logit> &best = member.best[row];
    const auto most = static_cast<size_t>(ask.wanted);
    const float threshold = best.size() >= most ? best.back().value : LOWEST;
    const int found = arithmetic_.kernels.above(logits, size, threshold, member.places.data());
    for (int i = 0; i < found; ++i) {
        const int at = member.places[static_cast<size_t>(i)];
        const Logit logit{logits[at], part.token(first_output + at)};
        if (best.size() == most && !(logit.value > best.back().value)) continue;
        if (ask.beam->forbids(ask.row, logit.token)) continue;
        if (best.size() == most) best.pop_back();
        const auto after = std::upper_bound(best.begin(), best.end(), logit,
                                            [](const Logit &one, const Logit &other) { return one.value > other.value; });
        best.insert(after, logit);
    }
}

// What all members have found of a row, as log-probabilities.
void Vocabulary::collect(const Part &part, int row, const Ask &ask, std::vector<Next> &nexts) const {
    nexts.clear();
    const float *peaks = &peak_[part.place(row, 0)];
    const float *sums = &sum_[part.place(row, 0)];
    const float peak = *std::max_element(peaks, peaks + part.chunks);
    double total = 0.0;
    for (int chunk = 0; chunk < part.chunks; ++chunk)
        total += static_cast<double>(sums[chunk]) * std::exp(static_cast<double>(peaks[chunk]) - static_cast<double>(peak));
    const auto log_total = static_cast<float>(std::log(total));
    if (!std::isfinite(log_total) || !std::isfinite(peak)) return;
    if (ask.only >= 0) {
        nexts.push_back({(only_[static_cast<size_t>(row)] - peak) - log_total, ask.only});
        return;
    }
    std::vector<Logit> all;
    for (const Member &member : members_) {
        const std::vector<Logit> &best = member.best[static_cast<size_t>(row)];
        all.insert(all.end(), best.begin(), best.end());
    }
    std::stable_sort(all.begin(), all.end(), [](const Logit &one, const Logit &other) { return one.value > other.value; });
    for (size_t place = 0; place < std::min(all.size(), static_cast<size_t>(ask.wanted)); ++place)
        nexts.push_back({(all[place].value - peak) - log_total, all[place].token});
}

int Vocabulary::Part::output(int token) const {
    if (tokens == nullptr) return token;
    const int32_t *end = tokens + matrix->outputs;
    const int32_t *found = std::lower_bound(tokens, end, token);
    return found == end || *found != token ? -1 : static_cast<int>(found - tokens);
}

} // namespace headway
