// Memory that grows to the largest size asked for and is kept, so that a step in the steady state
// allocates nothing.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/exec/memory_budget.h"

namespace mu {

class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  ~AlignedBuffer() { Free(); }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  // At least `bytes` bytes, aligned to 64, and 64 more that may be read but mean nothing. Contents
  // are lost when it grows; new memory is zero. For what is small: it may go beyond the budget.
  void* Reserve(size_t bytes) {
    if (data_ == nullptr || bytes > size_) Grow(bytes, /*beyond_budget=*/true);
    MU_CHECK(data_ != nullptr);
    return data_;
  }
  // Null if there is not that much memory, or the process's budget has no more (memory_budget.h);
  // the buffer is empty then.
  void* TryReserve(size_t bytes) {
    if (data_ == nullptr || bytes > size_) Grow(bytes, /*beyond_budget=*/false);
    return data_;
  }
  size_t size() const { return size_; }

 private:
  void Grow(size_t bytes, bool beyond_budget) {
    Free();
    // Room for a little more, since the count of unique ids differs from step to step.
    const size_t size = (bytes + bytes / 8 + kAlignment - 1) / kAlignment * kAlignment;
    MemoryBudget& budget = MemoryBudget::Process();
    if (beyond_budget) {
      budget.TakeBeyond(size);
    } else if (!budget.Take(size)) {
      return;
    }
    data_ = std::aligned_alloc(kAlignment, size + kAlignment);
    if (data_ == nullptr) return budget.Give(size);
    std::memset(data_, 0, size + kAlignment);
    size_ = size;
  }
  void Free() {
    std::free(data_);
    data_ = nullptr;
    if (size_ > 0) MemoryBudget::Process().Give(std::exchange(size_, 0));
  }

  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mu
