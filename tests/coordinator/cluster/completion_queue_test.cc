#include "coordinator/cluster/completion_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

std::shared_ptr<FunctionState> NewState() {
  return std::make_shared<FunctionState>(std::vector<std::string>(), 1);
}

TEST(CompletionQueue, GivesCallsInTheOrderInWhichTheyFinish) {
  CompletionQueue queue;
  std::vector<std::shared_ptr<FunctionState>> states;
  for (uint64_t i = 0; i < 4; ++i) {
    states.push_back(NewState());
    queue.Add(RemoteValue(FunctionId(i + 1), states.back()), 10 * i);
  }
  EXPECT_FALSE(queue.Next(absl::ZeroDuration()).has_value());
  for (const size_t i : {2, 0, 3}) states[i]->Finish(absl::OkStatus());
  for (const uint64_t i : {2, 0, 3}) {
    const auto done = queue.Next(absl::ZeroDuration());
    ASSERT_TRUE(done.has_value());
    EXPECT_EQ(done->value.id(), FunctionId(i + 1));
    EXPECT_EQ(done->tag, 10 * i);
  }
  EXPECT_FALSE(queue.Next(absl::ZeroDuration()).has_value()) << "the second one hangs";
  EXPECT_EQ(queue.size(), 1u);
}

TEST(CompletionQueue, TakesCallsThatAreDone) {
  CompletionQueue queue;
  const auto state = NewState();
  state->Finish(absl::CancelledError("c"));
  queue.Add(RemoteValue(FunctionId(1), state));
  queue.Add(RemoteValue());  // belongs to no call
  for (int i = 0; i < 2; ++i) {
    const auto done = queue.Next(absl::ZeroDuration());
    ASSERT_TRUE(done.has_value());
    EXPECT_FALSE(done->value.Fetch().ok());
  }
  EXPECT_TRUE(queue.empty());
}

TEST(CompletionQueue, WaitsForACallOfAnotherThread) {
  CompletionQueue queue;
  const auto state = NewState();
  queue.Add(RemoteValue(FunctionId(1), state));
  std::thread other([&] { state->Finish(absl::OkStatus()); });
  EXPECT_TRUE(queue.Next(absl::InfiniteDuration()).has_value());
  other.join();
}

TEST(CompletionQueue, ACallMayFinishAfterTheQueueIsGone) {
  const auto state = NewState();
  CompletionQueue().Add(RemoteValue(FunctionId(1), state));
  state->Finish(absl::OkStatus());
}

}  // namespace
}  // namespace mu
