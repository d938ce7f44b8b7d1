// The search of one sentence, step by step, by the rules of headway.search: it names the rows it wants computed, takes
// the best next tokens of each, and says when it has finished. It knows no model.
#pragma once

#include "tree.hpp"

#include <memory>
#include <utility>

namespace headway {

struct Settings {
    int beam = 4; // 1: greedy
    int n_best = 1;
    int no_repeat = 0;
    double length_penalty = 0.6;
    std::vector<int> never; // sorted: tokens that no output has, PAD and BOS among them
    std::shared_ptr<const Brackets> brackets; // outputs must be trees of these; null: anything
    float leaf_reward = 0.0F; // of trees: what ranks a hypothesis higher for each leaf that it has
};

struct Request {
    Ids source;
    Ids prefix;
    int limit = 0; // tokens of the output at most, EOS counted
    Ids leaves; // of its tree, where outputs must be trees: so many that the limit has room for them
};

struct Hypothesis {
    Ids tokens; // ends in EOS
    float log_prob = 0.0F;
    float score = 0.0F;
    bool is_cut = false;
};

// A token that a row may go on with, and its log-probability there.
struct Next {
    float log_prob;
    int token;
};

class Beam {
  public:
    Beam(const Request &request, const Settings &settings);

    // Of this step: how many rows, each one's newest token, and the row of the step before that it extends.
    int rows() const { return static_cast<int>(live_.size()); }
    int token(int row) const { return live_[static_cast<size_t>(row)].tokens.empty() ? BOS : live_[static_cast<size_t>(row)].tokens.back(); }
    int parent(int row) const { return live_[static_cast<size_t>(row)].parent; }
    int step() const { return step_; }

    // The one token that may come now, or -1.
    int only() const;
    // Whether a token may not come now, where ``only`` leaves it open.
    bool forbids(int row, int token) const;
    // How many of the best next tokens of each row are looked at.
    int wanted() const { return settings_.leaf_reward > 0.0F ? settings_.brackets->size() : most(); }

    // The best next tokens of each row, best first, among equals the lower token.
    void extend(const std::vector<std::vector<Next>> &nexts);

    bool is_over() const { return is_over_; }
    // Best first; empty if no output has a finite log-probability.
    std::vector<Hypothesis> take() { return std::move(finished_); }

  private:
    struct Live {
        Ids tokens;
        float log_prob = 0.0F;
        int parent = 0;
        std::vector<int> repeating; // sorted: tokens that would end a run for the second time
        Tree tree;                  // where outputs must be trees
    };

    // How many of the extensions of all rows are looked at.
    int most() const { return settings_.beam == 1 ? 1 : 2 * settings_.beam; }
    float rank(const Live &live, float log_prob, int token) const;
    void finish(const Live &live, float log_prob);
    bool may_stop(float best_log_prob) const;
    std::vector<int> repeating(const Ids &tokens) const;

    const Request &request_;
    const Settings &settings_;
    std::vector<Live> live_;
    std::vector<Hypothesis> finished_;
    int step_ = 0;
    bool is_over_ = false;
};

// ((5 + length) / 6) ^ alpha.
double length_penalty(int length, double alpha);

} // namespace headway
