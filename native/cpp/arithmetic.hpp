// Products and norms of many rows, shared among the threads of a team, in the precision that a matrix is packed in.
#pragma once

#include "model.hpp"
#include "rows.hpp"
#include "team.hpp"

namespace headway {

class Arithmetic {
  public:
    Arithmetic(const Kernels &kernels, Team &team) : kernels(kernels), team(team) {}

    // Rows x matrix.
    void multiply(const Matrix &matrix, const FloatRows &rows, const Sink &sink);

    // Every row by itself; ``out`` may be ``in``.
    void norm(const Norm &norm, const Config &config, const FloatTable &in, FloatTable &out);

    // Rows in the form that ``multiply_prepared`` takes: once for many products of the same rows.
    void prepare(const Matrix &matrix, const FloatRows &rows);
    // The blocks [begin, end) of some rows that were prepared; on the calling thread alone, safe on several threads at once.
    void multiply_prepared(const Matrix &matrix, int first_row, int count, int begin, int end, const Sink &sink) const;

    const Kernels &kernels;
    Team &team;

  private:
    FloatRows floats_;
    Numbers<int8_t> int8_;
    std::vector<float> scale_;
    std::vector<int32_t> sum_;
    size_t int8_stride_ = 0;
};

} // namespace headway
