#include "decoder.hpp"

#include <cstring>
#include <limits>
#include <numeric>

namespace headway {
namespace {

constexpr size_t POSITIONS = 16; // by so many a cache grows
constexpr int QUERIES = 16;      // of one sentence that are scored between two looks at the room for weights

} // namespace

Decoder::Decoder(const Model &model, const Kernels &kernels, Team &team)
    : model_(model), stack_(model, kernels, team, false), vocabulary_(model_.output, stack_.arithmetic),
      weights_(static_cast<size_t>(team.size())), forced_(model.short_caches()) {}

float *Decoder::room(int member, size_t count) {
    Numbers<float> &weights = weights_[static_cast<size_t>(member)];
    if (weights.size() < count) weights.resize(count);
    return weights.data();
}

void Decoder::step(const std::vector<Sentence *> &sentences) {
    open(sentences);
    for (size_t layer = 0; layer < model_.decoder.size(); ++layer) {
        const DecoderLayer &parts = model_.decoder[layer];
        stack_.project(parts.self_attention, position_.data());
        remember(sentences, layer);
        attend_self(sentences, layer);
        stack_.join(parts.self_attention.output, parts.self_attention.norm);
        attend_source(parts.cross_attention, layer, nullptr);
        stack_.feed_forward(parts.feed_forward);
    }
    stack_.close();
    vocabulary_.best(stack_.x.rows(), asks_, nexts_);
    for (size_t i = 0; i < sentences.size(); ++i) {
        const auto begin = nexts_.begin() + static_cast<long>(spans_[i].first);
        sentences[i]->beam.extend({begin, begin + spans_[i].count});
    }
}

// Rows for all hypotheses under way, and where each one's past stands.
void Decoder::open(const std::vector<Sentence *> &sentences) {
    spans_.clear();
    size_t count = 0;
    for (const Sentence *sentence : sentences) {
        spans_.push_back({count, sentence->beam.rows(), &sentence->memory});
        count += static_cast<size_t>(sentence->beam.rows());
    }
    stack_.resize(count);
    query_.resize(count, static_cast<size_t>(model_.config.query_size()));
    position_.resize(count);
    word_.resize(count);
    asks_.resize(count);
    for (size_t i = 0; i < sentences.size(); ++i) {
        Sentence &sentence = *sentences[i];
        const Beam &beam = sentence.beam;
        std::vector<std::vector<int32_t>> past;
        std::vector<int> word;
        for (int row = 0; row < beam.rows(); ++row) {
            const size_t place = spans_[i].first + static_cast<size_t>(row);
            const bool is_first = sentence.past.empty();
            const auto parent = static_cast<size_t>(beam.parent(row));
            past.push_back(is_first ? std::vector<int32_t>() : sentence.past[parent]);
            past.back().push_back(beam.step() * sentence.slots + row);
            position_[place] = beam.step();
            word.push_back(stack_.word_after(is_first ? 0 : sentence.word[parent], beam.token(row)));
            word_[place] = word.back();
            stack_.embed(place, beam.token(row), beam.step(), word.back());
            asks_[place] = {&beam, row, beam.only(), beam.wanted(), sentence.selection.get()};
        }
        sentence.past = std::move(past);
        sentence.word = std::move(word);
    }
}

void Decoder::remember(const std::vector<Sentence *> &sentences, size_t layer) {
    const Parts parts(model_.config);
    const auto key_size = static_cast<size_t>(model_.config.key_size());
    const auto value_size = static_cast<size_t>(model_.config.value_size());
    for (size_t i = 0; i < sentences.size(); ++i) {
        Sentence &sentence = *sentences[i];
        Written &written = sentence.written[layer];
        const auto slots = static_cast<size_t>(sentence.slots);
        const size_t places = (static_cast<size_t>(sentence.beam.step()) / POSITIONS + 1) * POSITIONS * slots;
        written.key.reserve(places * key_size);
        written.value.reserve(places * value_size);
        for (int row = 0; row < spans_[i].count; ++row) {
            const float *from = stack_.projected.at(spans_[i].first + static_cast<size_t>(row));
            const auto place = static_cast<size_t>(sentence.past[static_cast<size_t>(row)].back());
            written.key.put(stack_.arithmetic.kernels, place * key_size, from + parts.key, key_size);
            written.value.put(stack_.arithmetic.kernels, place * value_size, from + parts.value, value_size);
        }
    }
}

// ``count`` of the vectors written, from place ``first`` of the list on.
Past Decoder::past_of(const Written &written, const std::vector<int32_t> &places, size_t first, size_t count) const {
    return {written.key.data(), written.value.data(), written.key.is_short(), static_cast<size_t>(model_.config.key_size()),
            static_cast<size_t>(model_.config.value_size()), places.data() + first, static_cast<int>(count)};
}

void Decoder::attend_self(const std::vector<Sentence *> &sentences, size_t layer) {
    const Config &config = model_.config;
    const float *slopes = model_.slopes.empty() ? nullptr : model_.slopes.data();
    stack_.arithmetic.team.share(static_cast<int>(sentences.size()), 1, [&](int begin, int end, int member) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
            const Sentence &sentence = *sentences[i];
            const Written &written = sentence.written[layer];
            for (int row = 0; row < spans_[i].count; ++row) {
                const std::vector<int32_t> &places = sentence.past[static_cast<size_t>(row)];
                const Past past = past_of(written, places, 0, places.size());
                const size_t at = spans_[i].first + static_cast<size_t>(row);
                stack_.arithmetic.kernels.attend(stack_.projected.at(at), past, config.heads, slopes,
                                                 room(member, static_cast<size_t>(config.heads.queries) * padded(places.size())),
                                                 stack_.mixed.at(at));
            }
        }
    });
}

// Cross-attention of all rows, and x after it; the mean weights over heads on request.
void Decoder::attend_source(const CrossAttention &attention, size_t layer, std::vector<Attention> *found) {
    const Heads &heads = model_.config.heads;
    const float *slopes = model_.cross_slopes.empty() ? nullptr : model_.cross_slopes.data();
    stack_.arithmetic.multiply(attention.query, stack_.read(attention.norm).rows(), {query_.at(0), query_.stride()});
    stack_.arithmetic.team.share(static_cast<int>(spans_.size()), 1, [&](int begin, int end, int member) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
            const Memory &memory = *spans_[i].memory;
            const size_t width = padded(static_cast<size_t>(memory.length));
            float *weights = room(member, static_cast<size_t>(QUERIES * heads.queries) * width);
            for (int row = 0; row < spans_[i].count; row += QUERIES) {
                const int count = spans_[i].count - row < QUERIES ? spans_[i].count - row : QUERIES;
                const size_t at = spans_[i].first + static_cast<size_t>(row);
                const Source source{memory.key[layer].data(), memory.value[layer].data(), memory.key[layer].is_short(),
                                    memory.length};
                const Distance distance{slopes, 0, word_.data() + at, memory.word.data()};
                stack_.arithmetic.kernels.attend_source({query_.at(at), query_.stride(), count}, source, heads, distance, weights,
                                                        stack_.mixed.at(at), stack_.mixed.stride());
                if (found == nullptr) continue;
                for (int query = 0; query < count; ++query)
                    for (int place = 0; place < memory.length; ++place) {
                        float sum = 0.0F;
                        for (int head = 0; head < heads.queries; ++head)
                            sum += weights[static_cast<size_t>(query * heads.queries + head) * width + static_cast<size_t>(place)];
                        (*found)[i].weights.push_back(sum / static_cast<float>(heads.queries));
                    }
            }
        }
    });
    stack_.join(attention.output, attention.norm);
}

std::vector<std::vector<float>> Decoder::score(const std::vector<Forced> &targets) {
    force(targets, nullptr);
    vocabulary_.best(stack_.x.rows(), asks_, nexts_);
    std::vector<std::vector<float>> scores;
    for (const Span &span : spans_) {
        std::vector<float> own;
        for (size_t row = span.first; row < span.first + static_cast<size_t>(span.count); ++row)
            own.push_back(nexts_[row].empty() ? std::numeric_limits<float>::quiet_NaN() : nexts_[row].front().log_prob);
        scores.push_back(std::move(own));
    }
    return scores;
}

std::vector<Attention> Decoder::attend(const std::vector<Forced> &targets) {
    std::vector<Attention> found;
    for (const Forced &target : targets) found.push_back({static_cast<int>(target.target->size()), target.memory.length, {}});
    force(targets, &found);
    return found;
}

// All positions of all targets through all layers.
void Decoder::force(const std::vector<Forced> &targets, std::vector<Attention> *found) {
    spans_.clear();
    size_t count = 0;
    for (const Forced &target : targets) {
        const auto length = static_cast<int>(target.target->size());
        spans_.push_back({count, length, &target.memory});
        count += static_cast<size_t>(length);
    }
    stack_.resize(count);
    query_.resize(count, static_cast<size_t>(model_.config.query_size()));
    position_.resize(count);
    word_.resize(count);
    asks_.resize(count);
    for (size_t i = 0; i < targets.size(); ++i) {
        int word = 0;
        for (int place = 0; place < spans_[i].count; ++place) {
            const size_t row = spans_[i].first + static_cast<size_t>(place);
            const Ids &target = *targets[i].target;
            position_[row] = place;
            const int token = place == 0 ? BOS : target[static_cast<size_t>(place - 1)];
            word = stack_.word_after(word, token);
            word_[row] = word;
            stack_.embed(row, token, place, word);
            asks_[row] = {nullptr, 0, target[static_cast<size_t>(place)], 0};
        }
    }
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), 0);
    for (size_t layer = 0; layer < model_.decoder.size(); ++layer) {
        const DecoderLayer &parts = model_.decoder[layer];
        stack_.project(parts.self_attention, position_.data());
        attend_forced();
        stack_.join(parts.self_attention.output, parts.self_attention.norm);
        attend_source(parts.cross_attention, layer, layer + 1 == model_.decoder.size() ? found : nullptr);
        stack_.feed_forward(parts.feed_forward);
    }
    stack_.close();
}

// Self-attention where the past of a position is the rows before it.
void Decoder::attend_forced() {
    const Config &config = model_.config;
    const Parts parts(config);
    const auto key_size = static_cast<size_t>(config.key_size());
    const auto value_size = static_cast<size_t>(config.value_size());
    forced_.key.reserve(order_.size() * key_size);
    forced_.value.reserve(order_.size() * value_size);
    for (size_t row = 0; row < order_.size(); ++row) {
        forced_.key.put(stack_.arithmetic.kernels, row * key_size, stack_.projected.at(row) + parts.key, key_size);
        forced_.value.put(stack_.arithmetic.kernels, row * value_size, stack_.projected.at(row) + parts.value, value_size);
    }
    const float *slopes = model_.slopes.empty() ? nullptr : model_.slopes.data();
    stack_.arithmetic.team.share(static_cast<int>(spans_.size()), 1, [&](int begin, int end, int member) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
            for (int place = 0; place < spans_[i].count; ++place) {
                if (place % QUERIES == 0) stack_.arithmetic.team.look();
                const size_t at = spans_[i].first + static_cast<size_t>(place);
                const Past past = past_of(forced_, order_, spans_[i].first, static_cast<size_t>(place) + 1);
                stack_.arithmetic.kernels.attend(stack_.projected.at(at), past, config.heads, slopes,
                                                 room(member, static_cast<size_t>(config.heads.queries) * padded(static_cast<size_t>(place + 1))),
                                                 stack_.mixed.at(at));
            }
        }
    });
}

} // namespace headway
