#include "encoder.hpp"

#include <cstring>

namespace headway {
namespace {

constexpr size_t QUERIES = 16; // that are scored between one look at the room for weights and the next

} // namespace

void turn_keys(const float *rows, size_t stride, size_t length, size_t size, float *out) {
    const size_t width = padded(length);
    for (size_t place = 0; place < length; ++place)
        for (size_t number = 0; number < size; ++number) out[number * width + place] = rows[place * stride + number];
    for (size_t number = 0; number < size; ++number)
        std::memset(out + number * width + length, 0, (width - length) * sizeof(float));
}

Encoder::Encoder(const Model &model, const Kernels &kernels, Team &team)
    : model_(model), stack_(model, kernels, team, true), key_(static_cast<size_t>(team.size())),
      weights_(static_cast<size_t>(team.size())) {}

std::vector<Memory> Encoder::encode(const std::vector<const Ids *> &sources) {
    size_t count = 0;
    for (const Ids *source : sources) count += source->size();
    stack_.resize(count);
    position_.resize(count);
    size_t row = 0;
    std::vector<Memory> memories(sources.size());
    for (size_t i = 0; i < sources.size(); ++i) {
        const Ids &source = *sources[i];
        int word = 0;
        for (size_t place = 0; place < source.size(); ++place, ++row) {
            position_[row] = static_cast<int>(place);
            word = stack_.word_after(word, source[place]);
            memories[i].word.push_back(word);
            stack_.embed(row, source[place], position_[row], word);
        }
    }
    for (const EncoderLayer &layer : model_.encoder) {
        stack_.arithmetic.team.look();
        stack_.project(layer.attention, position_.data());
        attend(sources);
        stack_.join(layer.attention.output, layer.attention.norm);
        stack_.feed_forward(layer.feed_forward);
    }
    stack_.close();
    remember(sources, memories);
    return memories;
}

void Encoder::attend(const std::vector<const Ids *> &sources) {
    std::vector<size_t> first(sources.size());
    size_t row = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
        first[i] = row;
        row += sources[i]->size();
    }
    stack_.arithmetic.team.share(static_cast<int>(sources.size()), 1, [&](int begin, int end, int member) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
            attend_one(first[i], sources[i]->size(), member);
    });
}

void Encoder::attend_one(size_t first, size_t length, int member) {
    const Config &config = model_.config;
    const Parts parts(config);
    const size_t width = padded(length);
    const auto key_size = static_cast<size_t>(config.key_size());
    const auto value_size = static_cast<size_t>(config.value_size());
    Numbers<float> &room = key_[static_cast<size_t>(member)];
    room.resize(key_size * width + value_size * length);
    float *key = room.data();
    float *value = key + key_size * width;
    const size_t stride = stack_.projected.stride();
    turn_keys(stack_.projected.at(first) + parts.key, stride, length, key_size, key);
    for (size_t place = 0; place < length; ++place)
        std::memcpy(value + place * value_size, stack_.projected.at(first + place) + parts.value,
                    value_size * sizeof(float));
    Numbers<float> &weights = weights_[static_cast<size_t>(member)];
    weights.resize(QUERIES * static_cast<size_t>(config.heads.queries) * width);
    const float *slopes = model_.slopes.empty() ? nullptr : model_.slopes.data();
    for (size_t begin = 0; begin < length; begin += QUERIES) {
        stack_.arithmetic.team.look();
        const size_t count = length - begin < QUERIES ? length - begin : QUERIES;
        stack_.arithmetic.kernels.attend_source({stack_.projected.at(first + begin), stride, static_cast<int>(count)},
                                                {key, value, false, static_cast<int>(length)}, config.heads,
                                                {slopes, static_cast<int>(begin), nullptr, nullptr}, weights.data(),
                                                stack_.mixed.at(first + begin), stack_.mixed.stride());
    }
}

void Encoder::remember(const std::vector<const Ids *> &sources, std::vector<Memory> &memories) {
    const Config &config = model_.config;
    const auto key_size = static_cast<size_t>(config.key_size());
    const auto value_size = static_cast<size_t>(config.value_size());
    const size_t value_at = padded(key_size);
    memory_.resize(static_cast<size_t>(stack_.x.count()), value_at + padded(value_size));
    for (const DecoderLayer &layer : model_.decoder) {
        stack_.arithmetic.multiply(layer.cross_attention.memory, stack_.x.rows(), {memory_.at(0), memory_.stride()});
        size_t row = 0;
        for (size_t i = 0; i < sources.size(); ++i) {
            const size_t length = sources[i]->size();
            memories[i].length = static_cast<int>(length);
            Cache key(model_.short_caches()), value(model_.short_caches());
            const size_t size = key_size * padded(length);
            if (turned_.size() < size) turned_.resize(size);
            turn_keys(memory_.at(row), memory_.stride(), length, key_size, turned_.data());
            key.reserve(size);
            key.put(stack_.arithmetic.kernels, 0, turned_.data(), size);
            value.reserve(length * value_size);
            for (size_t place = 0; place < length; ++place)
                value.put(stack_.arithmetic.kernels, place * value_size, memory_.at(row + place) + value_at, value_size);
            memories[i].key.push_back(std::move(key));
            memories[i].value.push_back(std::move(value));
            row += length;
        }
    }
}

} // namespace headway
