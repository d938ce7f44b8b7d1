// Keys and values that attention reads again and again: float32, or bfloat16 beside weights of 8 bits, whose rounding is
// coarser. Half the bytes is half the time that they take from memory.
#pragma once

#include "rows.hpp"

namespace headway {

class Cache {
  public:
    explicit Cache(bool is_short = false) : is_short_(is_short) {}

    // Room for so many numbers; what is in it stays. It never shrinks.
    void reserve(size_t count) {
        if (room_.size() < count * width()) room_.resize(count * width());
    }

    void put(const Kernels &kernels, size_t place, const float *from, size_t count) {
        uint16_t *to = room_.data() + place * width();
        if (is_short_)
            kernels.narrow(from, count, to);
        else
            std::memcpy(to, from, count * sizeof(float));
    }

    const void *data() const { return room_.data(); }
    bool is_short() const { return is_short_; }

  private:
    size_t width() const { return is_short_ ? 1 : 2; }

    bool is_short_;
    Numbers<uint16_t> room_;
};

} // namespace headway
