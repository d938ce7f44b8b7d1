#include "stack.hpp"

#include <cmath>

namespace headway {

const float *Waves::at(int position) {
    const auto width = static_cast<size_t>(size_);
    for (size_t row = table_.size() / width; row <= static_cast<size_t>(position); ++row)
        for (size_t place = 0; place < width; ++place) {
            const double exponent = static_cast<double>(place / 2 * 2) / static_cast<double>(width);
            const double angle = static_cast<double>(row) / std::pow(10000.0, exponent);
            table_.push_back(static_cast<float>(place % 2 == 0 ? std::sin(angle) : std::cos(angle)));
        }
    return table_.data() + static_cast<size_t>(position) * width;
}

Stack::Stack(const Model &model, const Kernels &kernels, Team &team, bool is_encoder)
    : arithmetic(kernels, team), model_(model), config_(model.config), is_encoder_(is_encoder),
      residual_(is_encoder ? model.config.encoder_residual : model.config.decoder_residual),
      embedding_waves_(model.config.positions == Positions::words ? model.config.d_model - model.config.d_model / 2
                                                                  : model.config.d_model),
      word_waves_(model.config.d_model / 2), turning_waves_(model.config.heads.d_k) {}

void Stack::resize(size_t count) {
    const auto width = static_cast<size_t>(config_.d_model);
    x.resize(count, width);
    normed_.resize(config_.pre_norm ? count : 0, width);
    projected.resize(count, Parts(config_).end);
    mixed.resize(count, static_cast<size_t>(config_.mixed_size()));
    const auto inner = static_cast<size_t>(config_.d_ff);
    inner_.resize(count, config_.gated ? 2 * padded(inner) : inner);
    gated_.resize(config_.gated ? count : 0, inner);
}

int Stack::word_after(int word, int token) const {
    if (!config_.counts_words()) return 0;
    const uint8_t *starts = is_encoder_ ? model_.source_starts : model_.target_starts;
    return starts[token] == 0 ? word : word + 1;
}

void Stack::embed(size_t row, int token, int position, int word) {
    float *out = x.at(row);
    look_up(is_encoder_ ? model_.source_embedding : model_.target_embedding, token, out);
    const int size = config_.d_model;
    for (int i = 0; i < size; ++i) out[i] *= config_.embedding_scale;
    if (config_.positions == Positions::words) { // the first half of the numbers is the place's, the second the word's
        const int half = size - size / 2;
        const float *place = embedding_waves_.at(position);
        for (int i = 0; i < half; ++i) out[i] += place[i];
        if (size == half) return;
        const float *own = word_waves_.at(word);
        for (int i = half; i < size; ++i) out[i] += own[i - half];
        return;
    }
    const float *added = nullptr;
    if (config_.positions == Positions::sinusoidal) added = embedding_waves_.at(position);
    if (config_.positions == Positions::learned)
        added = (is_encoder_ ? model_.source_positions : model_.target_positions) +
                static_cast<size_t>(position) * static_cast<size_t>(size);
    if (added != nullptr)
        for (int i = 0; i < size; ++i) out[i] += added[i];
}

const FloatTable &Stack::read(const Norm &norm) {
    if (!config_.pre_norm) return x;
    arithmetic.norm(norm, config_, x, normed_);
    return normed_;
}

void Stack::project(const SelfAttention &attention, const int *position) {
    arithmetic.multiply(attention.project, read(attention.norm).rows(), {projected.at(0), projected.stride()});
    if (config_.positions != Positions::rope) return;
    const Parts parts(config_);
    for (size_t row = 0; row < static_cast<size_t>(x.count()); ++row) {
        turn(projected.at(row), config_.heads.queries, position[row]);
        turn(projected.at(row) + parts.key, config_.heads.keys, position[row]);
    }
}

void Stack::turn(float *vectors, int count, int position) {
    const float *wave = turning_waves_.at(position);
    for (int head = 0; head < count; ++head) {
        float *vector = vectors + static_cast<size_t>(head) * static_cast<size_t>(config_.heads.d_k);
        for (int i = 0; i < config_.heads.d_k; i += 2) {
            const float first = vector[i], second = vector[i + 1];
            vector[i] = first * wave[i + 1] - second * wave[i];
            vector[i + 1] = first * wave[i] + second * wave[i + 1];
        }
    }
}

void Stack::add(const Matrix &matrix, const FloatTable &from, const Norm &norm) {
    Sink sink{x.at(0), x.stride()};
    sink.residual = x.at(0);
    sink.residual_stride = x.stride();
    sink.residual_weight = residual_;
    arithmetic.multiply(matrix, from.rows(), sink);
    if (!config_.pre_norm) arithmetic.norm(norm, config_, x, x);
}

void Stack::join(const Matrix &matrix, const Norm &norm) { add(matrix, mixed, norm); }

void Stack::feed_forward(const FeedForward &feed_forward) {
    Sink sink{inner_.at(0), inner_.stride()};
    sink.relu = config_.activation == Activation::relu && !config_.gated;
    arithmetic.multiply(feed_forward.inner, read(feed_forward.norm).rows(), sink);
    const Kernels &kernels = arithmetic.kernels;
    if (config_.gated) {
        const size_t half = padded(static_cast<size_t>(config_.d_ff));
        arithmetic.team.share(x.count(), 4, [&](int begin, int end, int) {
            for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end); ++row)
                kernels.gate(inner_.at(row), inner_.at(row) + half, static_cast<int>(half), config_.activation,
                             gated_.at(row));
        });
        add(feed_forward.outer, gated_, feed_forward.norm);
        return;
    }
    if (!sink.relu)
        arithmetic.team.share(x.count(), 4, [&](int begin, int end, int) {
            for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end); ++row)
                kernels.activate(inner_.at(row), static_cast<int>(inner_.stride()), config_.activation);
        });
    add(feed_forward.outer, inner_, feed_forward.norm);
}

void Stack::close() {
    if (config_.pre_norm)
        arithmetic.norm(is_encoder_ ? model_.encoder_norm : model_.decoder_norm, config_, x, x);
}

} // namespace headway
