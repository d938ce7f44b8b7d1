#include "arithmetic.hpp"

namespace headway {
namespace {

constexpr int GRAIN = 8; // blocks: a thread's part never cuts those that one tile takes together

} // namespace

void Arithmetic::prepare(const Matrix &matrix, const FloatRows &rows) {
    floats_ = rows;
    if (!matrix.is_int8()) return;
    const auto count = static_cast<size_t>(rows.count);
    int8_stride_ = padded(static_cast<size_t>(matrix.inputs), 64);
    if (int8_.size() < count * int8_stride_) int8_.resize(count * int8_stride_);
    if (scale_.size() < count) {
        scale_.resize(count);
        sum_.resize(count);
    }
    team.share(rows.count, 4, [&](int begin, int end, int) {
        for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end); ++row)
            kernels.quantise(rows.data + row * rows.stride, matrix.inputs, int8_.data() + row * int8_stride_,
                             int8_stride_, &scale_[row], &sum_[row]);
    });
}

void Arithmetic::multiply_prepared(const Matrix &matrix, int first_row, int count, int begin, int end,
                                   const Sink &sink) const {
    const auto first = static_cast<size_t>(first_row);
    if (!matrix.is_int8()) {
        kernels.product_float(matrix, {floats_.data + first * floats_.stride, floats_.stride, count}, begin, end, sink);
        return;
    }
    const Int8Rows rows{int8_.data() + first * int8_stride_, scale_.data() + first, sum_.data() + first, int8_stride_,
                        count};
    kernels.product_int8(matrix, rows, begin, end, sink);
}

void Arithmetic::multiply(const Matrix &matrix, const FloatRows &rows, const Sink &sink) {
    prepare(matrix, rows);
    team.share(matrix.blocks(), GRAIN, [&](int from, int to, int) {
        Sink part = sink;
        const auto skipped = static_cast<size_t>(from) * BLOCK;
        part.out += skipped;
        if (part.residual != nullptr) part.residual += skipped;
        part.first_block = from;
        multiply_prepared(matrix, 0, rows.count, from, to, part);
    });
}

void Arithmetic::norm(const Norm &norm, const Config &config, const FloatTable &in, FloatTable &out) {
    team.share(in.count(), 4, [&](int begin, int end, int) {
        for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end); ++row)
            kernels.norm(in.at(row), config.d_model, norm.gain, norm.bias, config.epsilon, config.centred_norm,
                         out.at(row));
    });
}

} // namespace headway
