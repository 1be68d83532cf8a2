#include "common/base/signal_stack.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace mu {
namespace {

stack_t Current() {
  stack_t stack = {};
  EXPECT_EQ(::sigaltstack(nullptr, &stack), 0);
  return stack;
}

bool HasNone() { return (Current().ss_flags & SS_DISABLE) != 0; }

std::atomic<uintptr_t> frame_of_handler{0};

void OnSignal(int) { frame_of_handler = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

// Under AddressSanitizer threads have a stack from the beginning, which stays.
TEST(SignalStackTest, AThreadHasItAsLongAsTheObjectLives) {
  std::thread([] {
    const stack_t before = Current();
    {
      const SignalStack stack;
      EXPECT_FALSE(HasNone());
      const void* const memory = Current().ss_sp;
      {
        const SignalStack second;
        EXPECT_EQ(Current().ss_sp, memory) << "it has one already";
      }
      EXPECT_EQ(Current().ss_sp, memory) << "that of the first object stays";
    }
    EXPECT_EQ(HasNone(), (before.ss_flags & SS_DISABLE) != 0);
  }).join();
}

TEST(SignalStackTest, HandlersRunOnIt) {
  struct sigaction action = {}, before = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_ONSTACK;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::thread([] {
    const SignalStack stack;
    ::raise(SIGUSR1);
    const stack_t used = Current();
    const auto begin = reinterpret_cast<uintptr_t>(used.ss_sp);
    EXPECT_GE(frame_of_handler.load(), begin);
    EXPECT_LT(frame_of_handler.load(), begin + used.ss_size);
  }).join();
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

}  // namespace
}  // namespace mu
