#include "common/base/signal_stack.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace mu {
namespace {

// Unwinding and symbols take some 10 kB, the registers of a processor up to as much again.
constexpr size_t kBytes = size_t{128} << 10;

size_t PageBytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

SignalStack::SignalStack() {
  stack_t before = {};
  if (::sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
  const size_t page = PageBytes();
  void* const memory = ::mmap(nullptr, page + kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return;
  memory_ = static_cast<char*>(memory);
  stack_t stack = {};
  stack.ss_sp = memory_ + page;
  stack.ss_size = kBytes;
  // A handler that needs more is to crash, not to write over what lies below.
  if (::mprotect(memory_, page, PROT_NONE) == 0 && ::sigaltstack(&stack, nullptr) == 0) return;
  ::munmap(memory_, page + kBytes);
  memory_ = nullptr;
}

SignalStack::~SignalStack() {
  if (memory_ == nullptr) return;
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  if (::sigaltstack(&none, nullptr) == 0) ::munmap(memory_, PageBytes() + kBytes);
}

}  // namespace mu
