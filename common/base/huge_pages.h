// Large blocks of memory in huge pages.
#pragma once

#include <cstddef>

namespace mu {

// As std::aligned_alloc; std::free frees it. The kernel is asked to give large blocks in huge pages
// where it has them (of more than 32 MB): a message of 100 MB is otherwise some 25,000 page faults,
// each time, since blocks of that size go back to the kernel when they are freed.
void* AllocateLarge(size_t alignment, size_t bytes);

}  // namespace mu
