// How much memory the tensors of this process's functions have, and may have together: each
// function keeps its buffers for as long as it is installed. Without a limit nothing is refused.
//
// Thread safe; a few relaxed atomic operations when a buffer grows, which it does not in the steady
// state.
#pragma once

#include <atomic>
#include <cstddef>

namespace mu {

class MemoryBudget {
 public:
  // Never destroyed: buffers of threads end late.
  static MemoryBudget& Process();

  // 0: none. What is taken already stays.
  void SetLimit(size_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  size_t limit() const { return limit_.load(std::memory_order_relaxed); }
  size_t used() const { return used_.load(std::memory_order_relaxed); }

  // False, and nothing is taken, if it would go beyond the limit.
  [[nodiscard]] bool Take(size_t bytes) {
    const size_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (limit() == 0 || before + bytes <= limit()) return true;
    Give(bytes);
    return false;
  }
  // For what a kernel cannot do without: small and of a known size.
  void TakeBeyond(size_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void Give(size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<size_t> limit_{0};
  std::atomic<size_t> used_{0};
};

inline MemoryBudget& MemoryBudget::Process() {
  static MemoryBudget* const budget = new MemoryBudget;
  return *budget;
}

}  // namespace mu
