// The decoder: one step of many sentences, each at a step of its own; or all positions of given targets at once.
#pragma once

#include "encoder.hpp"
#include "vocabulary.hpp"

#include <memory>

namespace headway {

// Keys and values of tokens so far, for one layer: (position x rows of a beam x size).
struct Written {
    explicit Written(bool is_short) : key(is_short), value(is_short) {}
    Cache key;
    Cache value;
};

// A sentence under way. When a beam's rows change places nothing is moved: each row knows where the vectors of its own
// past stand.
struct Sentence {
    Sentence(const Request &request, const Settings &settings, Memory given, const Model &model,
             std::unique_ptr<const Selection> tokens)
        : beam(request, settings), memory(std::move(given)),
          written(model.decoder.size(), Written(model.short_caches())), slots(settings.beam),
          selection(std::move(tokens)) {}

    Beam beam;
    Memory memory;
    std::vector<Written> written; // of each layer
    int slots;
    std::unique_ptr<const Selection> selection; // the tokens that its output may have; null: all
    std::vector<std::vector<int32_t>> past; // of each row: places in the cache, the newest last
    std::vector<int> word;                  // of each row: the word that its newest token is at
};

// A target that is to be scored: its tokens, EOS the last.
struct Forced {
    const Ids *target = nullptr;
    Memory memory;
};

// The attention of a target's tokens over the source: (target x source), the mean over the last layer's heads.
struct Attention {
    int target = 0;
    int source = 0;
    std::vector<float> weights;
};

class Decoder {
  public:
    Decoder(const Model &model, const Kernels &kernels, Team &team);

    // One token more for every sentence.
    void step(const std::vector<Sentence *> &sentences);

    // The log-probability of every token of every target; NaN where the model's numbers are none.
    std::vector<std::vector<float>> score(const std::vector<Forced> &targets);
    std::vector<Attention> attend(const std::vector<Forced> &targets);

  private:
    // Rows of a sentence or target stand together.
    struct Span {
        size_t first;
        int count;
        const Memory *memory;
    };

    void open(const std::vector<Sentence *> &sentences);
    void remember(const std::vector<Sentence *> &sentences, size_t layer);
    Past past_of(const Written &written, const std::vector<int32_t> &places, size_t first, size_t count) const;
    void attend_self(const std::vector<Sentence *> &sentences, size_t layer);
    void attend_source(const CrossAttention &attention, size_t layer, std::vector<Attention> *found);
    void force(const std::vector<Forced> &targets, std::vector<Attention> *found);
    void attend_forced();
    float *room(int member, size_t count);

    const Model &model_;
    Stack stack_;
    Vocabulary vocabulary_;
    FloatTable query_;
    std::vector<Span> spans_;
    std::vector<int> position_;
    std::vector<int> word_; // that each row is at, where words are counted
    std::vector<Ask> asks_;
    std::vector<std::vector<Next>> nexts_;
    std::vector<Numbers<float>> weights_; // of each member of the team
    std::vector<int32_t> order_;
    Written forced_; // keys and values of given targets, a row a token
};

} // namespace headway
