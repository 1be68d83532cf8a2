#include "psserver/trim_heaps.h"

#include <malloc.h>

namespace mu {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasOwnAllocator = true;
#elif defined(__has_feature)  // as Clang says it
constexpr bool kHasOwnAllocator = __has_feature(address_sanitizer);
#else
constexpr bool kHasOwnAllocator = false;
#endif

}  // namespace

// Of glibc's allocator. ASan has its own, and then two threads must not be the first to ask glibc's
// at once (a SEGV in mtrim).
void TrimHeaps() {
  if (!kHasOwnAllocator) ::malloc_trim(0);
}

}  // namespace mu
