#include "worker/result_stream.h"

#include "tests/testing/matchers.h"
#include "tests/worker/fake_call.h"

namespace mu {
namespace {

constexpr uint64_t kMs = 1'000'000;

muster::StepResult Result(uint32_t step) {
  muster::StepResult result;
  result.set_step(step);
  return result;
}

TEST(ResultStreamTest, SlowStepsGoAtOnce) {
  auto call = std::make_shared<testing::FakeCall>();
  ResultStream stream(call);
  stream.Add(Result(0), 10 * kMs);
  EXPECT_EQ(call->messages().size(), 1u);
  stream.Add(Result(1), 12 * kMs);
  EXPECT_EQ(call->messages().size(), 2u);
}

TEST(ResultStreamTest, QuickStepsAreGroupedInOrder) {
  auto call = std::make_shared<testing::FakeCall>();
  ResultStream stream(call);
  for (uint32_t i = 0; i < 100; ++i) stream.Add(Result(i), kMs + i * kMs / 10);
  stream.Flush();
  const auto messages = call->messages();
  EXPECT_LE(messages.size(), 7u);
  uint32_t expected = 0;
  for (const auto& message : messages) {
    for (const auto& step : message.steps()) EXPECT_EQ(step.step(), expected++);
  }
  EXPECT_EQ(expected, 100u);
}

TEST(ResultStreamTest, FlushSendsNoEmptyMessage) {
  auto call = std::make_shared<testing::FakeCall>();
  ResultStream stream(call);
  stream.Flush();
  stream.Add(Result(0), kMs);
  stream.Flush();
  EXPECT_EQ(call->messages().size(), 1u);
}

}  // namespace
}  // namespace mu
