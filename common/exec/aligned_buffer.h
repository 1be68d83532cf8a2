// Memory that grows to the largest size asked for and is kept, so that a step in the steady state
// allocates nothing.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace mu {

class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  ~AlignedBuffer() { std::free(data_); }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  // At least `bytes` bytes, aligned to 64, and 64 more that may be read but mean nothing. Contents
  // are lost when it grows; new memory is zero.
  void* Reserve(size_t bytes) {
    void* const memory = TryReserve(bytes);
    MU_CHECK(memory != nullptr);
    return memory;
  }
  // Null if there is not that much memory; the buffer is empty then.
  void* TryReserve(size_t bytes) {
    if (data_ == nullptr || bytes > size_) Grow(bytes);
    return data_;
  }
  size_t size() const { return size_; }

 private:
  void Grow(size_t bytes) {
    std::free(data_);
    // Room for a little more, since the count of unique ids differs from step to step.
    size_ = (bytes + bytes / 8 + kAlignment - 1) / kAlignment * kAlignment;
    data_ = std::aligned_alloc(kAlignment, size_ + kAlignment);
    if (data_ == nullptr) {
      size_ = 0;
    } else {
      std::memset(data_, 0, size_ + kAlignment);
    }
  }

  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mu
