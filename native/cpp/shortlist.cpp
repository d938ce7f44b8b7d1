#include "shortlist.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace headway {
namespace {

// One number of each token's row: numbers that stand side by side for 16 outputs, in the whole matrix and in the part.
template <class Number>
void gather(const Number *from, size_t row_size, const std::vector<int32_t> &tokens, Number *to) {
    const size_t block_size = row_size * BLOCK;
    for (size_t begin = 0; begin < tokens.size(); begin += BLOCK) {
        const size_t count = std::min(tokens.size() - begin, static_cast<size_t>(BLOCK));
        const Number *rows[BLOCK];
        for (size_t lane = 0; lane < count; ++lane) {
            const auto token = static_cast<size_t>(tokens[begin + lane]);
            rows[lane] = from + token / BLOCK * block_size + token % BLOCK;
        }
        Number *block = to + begin / BLOCK * block_size;
        for (size_t i = 0; i < row_size; ++i)
            for (size_t lane = 0; lane < count; ++lane) block[i * BLOCK + lane] = rows[lane][i * BLOCK];
    }
}

struct Four8 { // the 8-bit numbers of a group
    uint8_t number[GROUP];
};

Numbers<float> picked(const float *from, const std::vector<int32_t> &tokens) {
    Numbers<float> numbers(padded(tokens.size()));
    for (size_t i = 0; i < tokens.size(); ++i) numbers[i] = from[tokens[i]];
    return numbers;
}

} // namespace

Shortlist::Shortlist(std::vector<int64_t> offsets, std::vector<int32_t> tokens, std::vector<int32_t> always, int target_vocab)
    : offsets_(std::move(offsets)), tokens_(std::move(tokens)), always_(std::move(always)), target_vocab_(target_vocab) {
    if (target_vocab_ <= EOS) throw std::invalid_argument("the shortlist's vocabulary has no EOS");
    if (offsets_.size() < 2 || offsets_.size() > size_t{1} << 27)
        throw std::invalid_argument("the shortlist has offsets for no source token, or for too many");
    if (offsets_.front() != 0 || offsets_.back() != static_cast<int64_t>(tokens_.size()) ||
        !std::is_sorted(offsets_.begin(), offsets_.end()))
        throw std::invalid_argument("the shortlist's offsets do not rise from 0 to its number of tokens, " +
                                    std::to_string(tokens_.size()));
    for (const std::vector<int32_t> *part : {&tokens_, &always_})
        for (const int32_t token : *part)
            if (token < 0 || token >= target_vocab_)
                throw std::invalid_argument("the shortlist has the target token " + std::to_string(token) +
                                            "; the vocabulary has " + std::to_string(target_vocab_));
}

std::vector<int32_t> Shortlist::allowed(const Request &request) const {
    std::vector<bool> is_allowed(static_cast<size_t>(target_vocab_));
    std::vector<int32_t> found;
    const auto allow = [&](int32_t token) {
        const auto place = static_cast<size_t>(token);
        if (!is_allowed[place]) found.push_back(token);
        is_allowed[place] = true;
    };
    allow(EOS);
    for (const int32_t token : always_) allow(token);
    for (const int token : request.prefix) allow(token);
    for (const int source : request.source)
        for (int64_t i = offsets_[static_cast<size_t>(source)]; i < offsets_[static_cast<size_t>(source) + 1]; ++i)
            allow(tokens_[static_cast<size_t>(i)]);
    std::sort(found.begin(), found.end());
    return found;
}

std::unique_ptr<Selection> Shortlist::select(const Request &request, const Matrix &whole) const {
    std::vector<int32_t> tokens = allowed(request);
    return tokens.size() > MOST ? nullptr : std::make_unique<Selection>(whole, std::move(tokens));
}

Selection::Selection(const Matrix &whole, std::vector<int32_t> tokens) : tokens_(std::move(tokens)), matrix_(whole) {
    matrix_.outputs = static_cast<int>(tokens_.size());
    const size_t all = padded(tokens_.size());
    if (whole.is_int8()) {
        const auto groups = static_cast<size_t>(whole.groups());
        int8_.assign(all * groups * GROUP, 128); // the padding weighs nothing
        gather(static_cast<const Four8 *>(whole.data), groups, tokens_, reinterpret_cast<Four8 *>(int8_.data()));
        matrix_.data = int8_.data();
        scale_ = picked(whole.scale, tokens_);
        matrix_.scale = scale_.data();
    } else {
        const auto inputs = static_cast<size_t>(whole.inputs);
        float_.resize(all * inputs);
        gather(static_cast<const float *>(whole.data), inputs, tokens_, float_.data());
        matrix_.data = float_.data();
    }
    if (whole.bias != nullptr) {
        bias_ = picked(whole.bias, tokens_);
        matrix_.bias = bias_.data();
    }
}

} // namespace headway
