#include "beam.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headway {

double length_penalty(int length, double alpha) { return std::pow((5.0 + length) / 6.0, alpha); }

Beam::Beam(const Request &request, const Settings &settings) : request_(request), settings_(settings), live_(1) {
    if (settings_.brackets) live_.front().tree = Tree(*settings_.brackets, request_.leaves);
}

int Beam::only() const {
    if (step_ < static_cast<int>(request_.prefix.size())) return request_.prefix[static_cast<size_t>(step_)];
    return step_ + 1 >= request_.limit ? EOS : -1;
}

bool Beam::forbids(int row, int token) const {
    const auto has = [token](const std::vector<int> &sorted) { return std::binary_search(sorted.begin(), sorted.end(), token); };
    const Live &live = live_[static_cast<size_t>(row)];
    if (settings_.brackets && live.tree.forbids(token, request_.limit - step_ - 1)) return true;
    return has(settings_.never) || has(live.repeating);
}

// What extensions are ranked by. All whole trees have as many leaves, so their reward compares hypotheses under way alone.
float Beam::rank(const Live &live, float log_prob, int token) const {
    if (!(settings_.leaf_reward > 0.0F)) return log_prob;
    return log_prob + settings_.leaf_reward * static_cast<float>(live.tree.leaves_with(token));
}

void Beam::extend(const std::vector<std::vector<Next>> &nexts) {
    struct Extension {
        float rank;
        float log_prob;
        int row;
        int token;
    };
    std::vector<Extension> all;
    for (size_t row = 0; row < live_.size(); ++row)
        for (const Next &next : nexts[row]) {
            const float log_prob = live_[row].log_prob + next.log_prob;
            if (std::isfinite(log_prob))
                all.push_back({rank(live_[row], log_prob, next.token), log_prob, static_cast<int>(row), next.token});
        }
    std::sort(all.begin(), all.end(), [](const Extension &one, const Extension &other) {
        if (one.rank != other.rank) return one.rank > other.rank;
        return one.row != other.row ? one.row < other.row : one.token < other.token;
    });
    const auto width = static_cast<size_t>(settings_.beam);
    if (all.size() > static_cast<size_t>(most())) all.resize(static_cast<size_t>(most()));
    for (size_t place = 0; place < std::min(width, all.size()); ++place)
        if (all[place].token == EOS) finish(live_[static_cast<size_t>(all[place].row)], all[place].log_prob);
    std::vector<Live> going_on;
    float best = -std::numeric_limits<float>::infinity();
    for (const Extension &extension : all) {
        if (extension.token == EOS || going_on.size() == width) continue;
        const Live &parent = live_[static_cast<size_t>(extension.row)];
        Live live{parent.tokens, extension.log_prob, extension.row, {}, parent.tree};
        live.tokens.push_back(extension.token);
        if (settings_.brackets) live.tree.add(extension.token);
        if (settings_.no_repeat > 0) live.repeating = repeating(live.tokens);
        best = std::max(best, live.log_prob);
        going_on.push_back(std::move(live));
    }
    ++step_;
    is_over_ = going_on.empty() || step_ >= request_.limit || may_stop(best);
    live_ = std::move(going_on);
}

void Beam::finish(const Live &live, float log_prob) {
    Hypothesis hypothesis{live.tokens, log_prob, log_prob / static_cast<float>(length_penalty(step_ + 1, settings_.length_penalty)), false};
    hypothesis.tokens.push_back(EOS);
    hypothesis.is_cut = static_cast<int>(hypothesis.tokens.size()) == request_.limit;
    const auto place = std::find_if(finished_.begin(), finished_.end(),
                                    [&](const Hypothesis &other) { return other.score < hypothesis.score; });
    finished_.insert(place, std::move(hypothesis));
    if (finished_.size() > static_cast<size_t>(settings_.n_best)) finished_.pop_back();
}

// Whether nothing under way can still exceed the worst finished score that is kept: a log-probability never rises, and
// the largest penalty is that of the limit.
bool Beam::may_stop(float best_log_prob) const {
    if (finished_.size() < static_cast<size_t>(settings_.n_best)) return false;
    if (settings_.beam == 1) return true;
    return finished_.back().score >= best_log_prob / static_cast<float>(length_penalty(request_.limit, settings_.length_penalty));
}

std::vector<int> Beam::repeating(const Ids &tokens) const {
    std::vector<int> found;
    const auto context = static_cast<size_t>(settings_.no_repeat - 1);
    if (tokens.size() < context + 1) return found;
    const size_t newest = tokens.size() - context;
    for (size_t place = 0; place + context < tokens.size(); ++place)
        if (std::equal(tokens.begin() + static_cast<long>(newest), tokens.end(), tokens.begin() + static_cast<long>(place)))
            found.push_back(tokens[place + context]);
    std::sort(found.begin(), found.end());
    return found;
}

} // namespace headway
