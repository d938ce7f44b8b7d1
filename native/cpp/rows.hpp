// Room for rows of numbers that grows and never shrinks, aligned to a cache line. Rows are padded to whole blocks.
#pragma once

#include "kernels.hpp"

#include <cstring>
#include <new>
#include <vector>

namespace headway {

template <class Number> struct Aligned {
    using value_type = Number;
    Aligned() = default;
    template <class Other> Aligned(const Aligned<Other> &) {}
    Number *allocate(size_t count) {
        return static_cast<Number *>(::operator new(count * sizeof(Number), std::align_val_t{64}));
    }
    void deallocate(Number *at, size_t) { ::operator delete(at, std::align_val_t{64}); }
    template <class Other> bool operator==(const Aligned<Other> &) const { return true; }
};

template <class Number> using Numbers = std::vector<Number, Aligned<Number>>;

class FloatTable {
  public:
    // Room for so many rows of this size; what was in it is lost. The padding of rows is zero.
    void resize(size_t count, size_t size) {
        size_ = size;
        stride_ = padded(size);
        if (numbers_.size() < count * stride_) numbers_.resize(count * stride_);
        count_ = count;
        if (stride_ != size_)
            for (size_t row = 0; row < count; ++row)
                std::memset(at(row) + size_, 0, (stride_ - size_) * sizeof(float));
    }

    float *at(size_t row) { return numbers_.data() + row * stride_; }
    const float *at(size_t row) const { return numbers_.data() + row * stride_; }
    size_t stride() const { return stride_; }
    int size() const { return static_cast<int>(size_); }
    int count() const { return static_cast<int>(count_); }
    FloatRows rows() const { return {numbers_.data(), stride_, count()}; }

  private:
    Numbers<float> numbers_;
    size_t size_ = 0;
    size_t stride_ = 0;
    size_t count_ = 0;
};

} // namespace headway
