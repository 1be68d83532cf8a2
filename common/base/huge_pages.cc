#include "common/base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace mu {
namespace {

constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
// Larger ones are always mappings of their own, which go back to the kernel. Smaller ones may lie
// in a heap, where the advice would outlive them.
constexpr size_t kMostInHeap = size_t{32} << 20;

}  // namespace

void* AllocateLarge(size_t alignment, size_t bytes) {
  void* const memory = std::aligned_alloc(alignment, bytes);
  if (memory == nullptr || bytes <= kMostInHeap) return memory;
  // Only whole ones, so that no more memory is taken than was asked for.
  const uintptr_t at = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (at + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (at + bytes) / kHugePage * kHugePage;
  // An advice: nothing is lost where the kernel does not take it.
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  return memory;
}

}  // namespace mu
