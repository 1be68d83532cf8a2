#include "common/client/call_retries.h"

#include "common/base/error_kind.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using Verdict = CallRetries::Verdict;

constexpr int64_t kMs = 1'000'000;

RetryPolicy Policy() {
  return {.call_timeout = absl::Milliseconds(30),
          .total_timeout = absl::Milliseconds(100),
          .first_backoff = absl::Milliseconds(10),
          .longest_backoff = absl::Milliseconds(20)};
}

TEST(CallRetriesTest, WhatTheMachineDoesIsTriedAgainLaterAndLater) {
  CallRetries retries(2, Policy(), 0);
  EXPECT_EQ(retries.next_due_ns(), CallRetries::kNever);
  EXPECT_EQ(retries.Failed(1, absl::UnavailableError("refused"), 0), Verdict::kRetry);
  const int64_t first = retries.next_due_ns();
  EXPECT_GE(first, 5 * kMs);
  EXPECT_LE(first, 10 * kMs);
  EXPECT_EQ(retries.TakeDue(first - 1), std::nullopt);
  EXPECT_EQ(retries.TakeDue(first), 1u);
  EXPECT_EQ(retries.TakeDue(first), std::nullopt) << "it is under way";
  EXPECT_EQ(retries.Failed(1, absl::DeadlineExceededError("slow"), first), Verdict::kRetry);
  EXPECT_GE(retries.next_due_ns(), first + 10 * kMs);
  EXPECT_LE(retries.next_due_ns(), first + 20 * kMs);
}

TEST(CallRetriesTest, ARefusalIsFinal) {
  CallRetries retries(1, Policy(), 0);
  for (const absl::Status& status :
       {absl::FailedPreconditionError("stale"), absl::DataLossError("damaged"),
        WithKind(absl::UnavailableError("stale"), pb::ERROR_STALE, pb::ROLE_PSSERVER)}) {
    EXPECT_EQ(retries.Failed(0, status, 0), Verdict::kFinal) << status;
  }
}

TEST(CallRetriesTest, IsGivenUpAfterTheTotalTimeout) {
  CallRetries retries(1, Policy(), 7 * kMs);
  EXPECT_EQ(retries.Failed(0, absl::UnavailableError("refused"), 107 * kMs - 1), Verdict::kRetry);
  EXPECT_EQ(retries.Failed(0, absl::UnavailableError("refused"), 107 * kMs), Verdict::kGivenUp);
}

TEST(CallRetriesTest, ATryEndsWithTheTotalTimeout) {
  CallRetries retries(1, Policy(), 0);
  EXPECT_EQ(retries.TryTimeout(0), absl::Milliseconds(30));
  EXPECT_EQ(retries.TryTimeout(80 * kMs), absl::Milliseconds(20));
  EXPECT_EQ(retries.TryTimeout(200 * kMs), absl::Milliseconds(1));
  RetryPolicy unbound = Policy();
  unbound.bound_tries = false;
  EXPECT_EQ(CallRetries(1, unbound, 0).TryTimeout(80 * kMs), absl::Milliseconds(30));
}

TEST(CallRetriesTest, AnEndlessTotalTimeoutIsNeverOver) {
  RetryPolicy endless = Policy();
  endless.total_timeout = absl::InfiniteDuration();
  CallRetries retries(1, endless, 5 * kMs);
  EXPECT_EQ(retries.TryTimeout(5 * kMs), absl::Milliseconds(30));
  EXPECT_EQ(retries.Failed(0, absl::UnavailableError("refused"), int64_t{1} << 60),
            Verdict::kRetry);
}

TEST(CallRetriesTest, IsDoneWhenEachHasSucceeded) {
  CallRetries retries(2, Policy(), 0);
  retries.Succeeded();
  EXPECT_FALSE(retries.done());
  retries.Succeeded();
  EXPECT_TRUE(retries.done());
  EXPECT_TRUE(CallRetries(0, Policy(), 0).done());
}

}  // namespace
}  // namespace mu
