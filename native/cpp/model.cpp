#include "model.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <stdexcept>

namespace headway {
namespace {

class Reader {
  public:
    Reader(const Config &config, const Arrays &arrays) : config_(config), arrays_(arrays) {}

    const float *floats(const std::string &name, size_t count) const {
        const void *found = find(name, count * sizeof(float)).data;
        if (reinterpret_cast<std::uintptr_t>(found) % alignof(float) != 0)
            throw std::invalid_argument("the packed model's array " + name + " does not begin at a multiple of 4 bytes");
        return static_cast<const float *>(found);
    }

    const float *floats_if_any(const std::string &name, size_t count) const {
        return arrays_.count(name) == 0 ? nullptr : floats(name, count);
    }

    // A byte a token, padded to whole blocks.
    const uint8_t *bytes(const std::string &name, size_t count) const {
        return static_cast<const uint8_t *>(find(name, padded(count)).data);
    }

    Matrix matrix(const std::string &name, size_t outputs, size_t inputs) const {
        Matrix matrix;
        matrix.outputs = static_cast<int>(outputs);
        matrix.inputs = static_cast<int>(inputs);
        const size_t all = padded(outputs);
        matrix.scale = floats_if_any(name + ".scale", all);
        matrix.bias = floats_if_any(name + ".bias", all);
        if (!matrix.is_int8()) {
            matrix.data = floats(name + ".weight", all * inputs);
            return matrix;
        }
        if (inputs > MOST_INT8_INPUTS)
            throw std::invalid_argument("the packed model's matrix " + name + " has " + std::to_string(inputs) +
                                        " inputs; in 8 bits at most " + std::to_string(MOST_INT8_INPUTS) + " can be added up");
        matrix.data = find(name + ".weight", all * padded(inputs, GROUP)).data;
        return matrix;
    }

    // Throws if an array is there that the configuration does not ask for: a name was changed, or it is another model's.
    void check_all_read() const {
        for (const auto &[name, array] : arrays_)
            if (read_.count(name) == 0)
                throw std::invalid_argument("the packed model has an array " + name + ", for which its configuration does not ask");
    }

    Norm norm(const std::string &name) const {
        const size_t size = padded(width());
        return {floats(name + ".gain", size), floats_if_any(name + ".bias", size)};
    }

    SelfAttention self_attention(const std::string &name) const {
        const size_t parts = padded(static_cast<size_t>(config_.query_size())) +
                             padded(static_cast<size_t>(config_.key_size())) +
                             padded(static_cast<size_t>(config_.value_size()));
        return {matrix(name + ".project", parts, width()), output(name), norm(name + ".norm")};
    }

    CrossAttention cross_attention(const std::string &name) const {
        const size_t memory = padded(static_cast<size_t>(config_.key_size())) +
                              padded(static_cast<size_t>(config_.value_size()));
        return {matrix(name + ".query", static_cast<size_t>(config_.query_size()), width()),
                matrix(name + ".memory", memory, width()), output(name), norm(name + ".norm")};
    }

    FeedForward feed_forward(const std::string &name) const {
        const auto inner = static_cast<size_t>(config_.d_ff);
        return {matrix(name + ".inner", config_.gated ? 2 * padded(inner) : inner, width()),
                matrix(name + ".outer", width(), inner), norm(name + ".norm")};
    }

  private:
    size_t width() const { return static_cast<size_t>(config_.d_model); }

    Matrix output(const std::string &name) const {
        return matrix(name + ".output", width(), static_cast<size_t>(config_.mixed_size()));
    }

    const Array &find(const std::string &name, size_t bytes) const {
        const auto found = arrays_.find(name);
        if (found == arrays_.end()) throw std::invalid_argument("the packed model has no array " + name);
        if (found->second.bytes != bytes)
            throw std::invalid_argument("the packed model's array " + name + " has " +
                                        std::to_string(found->second.bytes) + " bytes; its configuration asks for " +
                                        std::to_string(bytes));
        read_.insert(name);
        return found->second;
    }

    const Config &config_;
    const Arrays &arrays_;
    mutable std::set<std::string> read_;
};

void check(const Config &config) {
    struct Size {
        const char *name;
        int found;
        int least;
        int most;
    };
    constexpr int most = 1 << 20;
    const Heads &heads = config.heads;
    const Size sizes[] = {{"d_model", config.d_model, 1, most},
                          {"d_ff", config.d_ff, 1, most},
                          {"num_heads", heads.queries, 1, 4096},
                          {"num_kv_heads", heads.keys, 1, heads.queries},
                          {"d_k", heads.d_k, 1, 1 << 16},
                          {"d_v", heads.d_v, 1, 1 << 16},
                          {"num_encoder_layers", config.encoder_layers, 1, most},
                          {"num_decoder_layers", config.decoder_layers, 1, most},
                          {"source_vocab_size", config.source_vocab, 4, 1 << 27},
                          {"vocab_size", config.target_vocab, 4, 1 << 27},
                          {"max_positions", config.max_positions, config.positions == Positions::learned ? 1 : 0,
                           std::numeric_limits<int>::max()}};
    for (const auto &[name, found, least, greatest] : sizes)
        if (found < least || found > greatest)
            throw std::invalid_argument(std::string(name) + " of the model is " + std::to_string(found) + "; wanted " +
                                        std::to_string(least) + " to " + std::to_string(greatest));
    if (heads.queries % heads.keys != 0)
        throw std::invalid_argument("num_kv_heads of the model is " + std::to_string(heads.keys) +
                                    "; wanted a divisor of num_heads, " + std::to_string(heads.queries));
    if (config.positions == Positions::rope && heads.d_k % 2 != 0)
        throw std::invalid_argument("d_k of the model is " + std::to_string(heads.d_k) +
                                    "; wanted an even number with rotary positions");
}

// 2^(-8/H), 2^(-16/H) ...; for an H that is no power of two those of the one below, then every second of the one above.
std::vector<float> alibi_slopes(int heads) {
    int below = 1;
    while (2 * below <= heads) below *= 2;
    std::vector<float> slopes;
    for (int head = 0; head < below; ++head) slopes.push_back(static_cast<float>(std::pow(2.0, -8.0 * (head + 1) / below)));
    for (int head = 0; head < heads - below; ++head)
        slopes.push_back(static_cast<float>(std::pow(2.0, -4.0 * (2 * head + 1) / below)));
    return slopes;
}

} // namespace

Model::Model(const Config &given, const Arrays &arrays) : config(given) {
    check(config);
    const Reader reader(config, arrays);
    const auto width = static_cast<size_t>(config.d_model);
    source_embedding = reader.matrix("source_embedding", static_cast<size_t>(config.source_vocab), width);
    target_embedding = reader.matrix("target_embedding", static_cast<size_t>(config.target_vocab), width);
    output = reader.matrix("output", static_cast<size_t>(config.target_vocab), width);
    if (config.positions == Positions::learned) {
        const size_t count = padded(static_cast<size_t>(config.max_positions) * width);
        source_positions = reader.floats("source_positions", count);
        target_positions = reader.floats("target_positions", count);
    }
    if (config.counts_words()) {
        source_starts = reader.bytes("source_word_starts", static_cast<size_t>(config.source_vocab));
        target_starts = reader.bytes("target_word_starts", static_cast<size_t>(config.target_vocab));
    }
    for (int layer = 0; layer < config.encoder_layers; ++layer) {
        const std::string name = "encoder." + std::to_string(layer);
        encoder.push_back({reader.self_attention(name + ".attention"), reader.feed_forward(name + ".feed_forward")});
    }
    for (int layer = 0; layer < config.decoder_layers; ++layer) {
        const std::string name = "decoder." + std::to_string(layer);
        decoder.push_back({reader.self_attention(name + ".self_attention"),
                           reader.cross_attention(name + ".cross_attention"),
                           reader.feed_forward(name + ".feed_forward")});
    }
    if (config.pre_norm) {
        encoder_norm = reader.norm("encoder.norm");
        decoder_norm = reader.norm("decoder.norm");
    }
    reader.check_all_read();
    if (config.positions == Positions::alibi) slopes = alibi_slopes(config.heads.queries);
    if (config.cross_words) {
        cross_slopes = alibi_slopes(config.heads.queries);
        for (float &slope : cross_slopes) slope *= 4.0F;
    }
}

void look_up(const Matrix &matrix, int token, float *out) {
    const auto block = static_cast<size_t>(token / BLOCK);
    const auto lane = static_cast<size_t>(token % BLOCK);
    if (!matrix.is_int8()) {
        const float *from = static_cast<const float *>(matrix.data) + block * static_cast<size_t>(matrix.inputs) * BLOCK + lane;
        for (int input = 0; input < matrix.inputs; ++input) out[input] = from[static_cast<size_t>(input) * BLOCK];
        return;
    }
    const auto groups = static_cast<size_t>(matrix.groups());
    const uint8_t *from = static_cast<const uint8_t *>(matrix.data) + (block * groups * BLOCK + lane) * GROUP;
    const float scale = matrix.scale[token];
    for (int input = 0; input < matrix.inputs; ++input) {
        const uint8_t weight = from[static_cast<size_t>(input / GROUP) * BLOCK * GROUP + static_cast<size_t>(input % GROUP)];
        out[input] = static_cast<float>(int{weight} - 128) * scale;
    }
}

} // namespace headway
