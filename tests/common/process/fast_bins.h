// What is free in the fast bins of this process, to see whether it has any.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace mu::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kGlibcAllocates = false;
#elif defined(__has_feature)  // as Clang says it
constexpr bool kGlibcAllocates =
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
constexpr bool kGlibcAllocates = true;
#endif

// Frees more small pieces than a thread's cache holds. The bytes in fast bins then; 0 also where
// the allocator is not glibc's.
inline size_t FastBinBytesAfterManyFrees() {
  if (!kGlibcAllocates) return 0;
  constexpr size_t kPieces = 10'000, kSize = 40;
  std::vector<void*> pieces(kPieces);
  for (void*& piece : pieces) piece = std::malloc(kSize);
  for (void* const piece : pieces) std::free(piece);
  return mallinfo2().fsmblks;
}

// As glibc begins.
inline void EnableFastBins() { mallopt(M_MXFAST, 64 * sizeof(size_t) / 4); }

}  // namespace mu::testing
