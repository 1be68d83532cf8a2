#include "common/client/feed_retries.h"

#include <algorithm>
#include <optional>

#include "common/rpc/refused.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using Silence = FeedRetries::Silence;

constexpr absl::Duration kMs = absl::Milliseconds(1);
constexpr FeedPolicy kPolicy = {.give_up = absl::Milliseconds(80),
                                .first_backoff = absl::Milliseconds(10),
                                .longest_backoff = absl::Milliseconds(40)};

class FeedRetriesTest : public ::testing::Test {
 protected:
  static absl::Time At(int ms) { return absl::UnixEpoch() + ms * kMs; }
  // A connection on which the worker says nothing, says what is not new, or says something new.
  std::optional<absl::Duration> Connection(bool answered, bool is_new, int broken_ms = 0,
                                           absl::Status why = absl::UnavailableError("broken")) {
    retries_.Connected();
    if (answered) retries_.Answered(/*is_new=*/false);
    if (is_new) retries_.Answered(/*is_new=*/true);
    return retries_.Broken(why, At(broken_ms));
  }

  FeedRetries retries_{kPolicy, At(0)};
};

TEST_F(FeedRetriesTest, AStreamThatHasBroughtSomethingNewIsOpenedAgainAtOnce) {
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(Connection(/*answered=*/true, /*is_new=*/true), absl::ZeroDuration());
}

TEST_F(FeedRetriesTest, ConnectionsInVainComeLaterAndLater) {
  absl::Duration most = kPolicy.first_backoff;
  for (int i = 0; i < 20; ++i) {
    const auto delay = Connection(/*answered=*/false, /*is_new=*/false);
    ASSERT_TRUE(delay.has_value());
    EXPECT_GE(*delay, most / 2);
    EXPECT_LE(*delay, most);
    most = std::min(2 * most, kPolicy.longest_backoff);
  }
  EXPECT_EQ(Connection(/*answered=*/true, /*is_new=*/true), absl::ZeroDuration());
  const auto delay = Connection(/*answered=*/true, /*is_new=*/false);
  ASSERT_TRUE(delay.has_value());
  EXPECT_GE(*delay, kPolicy.first_backoff / 2) << "what has come before is not new";
  EXPECT_LE(*delay, kPolicy.first_backoff);
}

TEST_F(FeedRetriesTest, AWorkerThatOnlyAnswersIsGivenUp) {
  for (uint32_t i = 0; i < FeedRetries::kMostFruitless; ++i)
    ASSERT_TRUE(Connection(/*answered=*/true, /*is_new=*/false).has_value()) << i;
  EXPECT_EQ(Connection(/*answered=*/true, /*is_new=*/false), std::nullopt);
}

TEST_F(FeedRetriesTest, OneThatDoesNotAnswerIsGivenUpForItsSilenceOnly) {
  for (uint32_t i = 0; i < 2 * FeedRetries::kMostFruitless; ++i)
    ASSERT_TRUE(Connection(/*answered=*/false, /*is_new=*/false).has_value()) << i;
}

TEST_F(FeedRetriesTest, ErrorsThatPassAndErrorsThatDoNot) {
  const absl::Status passing[] = {
      absl::OkStatus(),           absl::UnavailableError(""),      absl::AbortedError(""),
      absl::CancelledError(""),   absl::DeadlineExceededError(""), absl::InternalError(""),
      absl::UnknownError("reset")};
  for (const absl::Status& status : passing)
    EXPECT_NE(Connection(true, true, 0, status), std::nullopt) << status;
  const absl::Status final_ones[] = {
      AsRefused(absl::UnavailableError("nobody listens")), absl::FailedPreconditionError("stale"),
      absl::UnimplementedError("no streams"), absl::DataLossError("garbage")};
  for (const absl::Status& status : final_ones)
    EXPECT_EQ(Connection(true, true, 0, status), std::nullopt) << status;
}

TEST_F(FeedRetriesTest, SilenceIsCountedFromTheBeginningOn) {
  EXPECT_EQ(retries_.count_interval(), 10 * kMs);
  ASSERT_TRUE(retries_.Connected());
  for (int ms = 10; ms < 80; ms += 10) ASSERT_EQ(retries_.CountSilence(At(ms)), Silence::kGoesOn);
  EXPECT_EQ(retries_.CountSilence(At(80)), Silence::kGivenUp);
}

TEST_F(FeedRetriesTest, AConnectionIsNoAnswer) {
  ASSERT_TRUE(retries_.Connected());
  ASSERT_EQ(retries_.CountSilence(At(10)), Silence::kGoesOn);
  retries_.Broken(absl::UnavailableError("broken"), At(15));
  EXPECT_FALSE(retries_.Connected()) << "it is being counted";
  for (int ms = 20; ms < 80; ms += 10) ASSERT_EQ(retries_.CountSilence(At(ms)), Silence::kGoesOn);
  EXPECT_EQ(retries_.CountSilence(At(80)), Silence::kGivenUp);
}

TEST_F(FeedRetriesTest, AnAnswerEndsTheSilenceAndABreakBeginsTheNextOne) {
  ASSERT_TRUE(retries_.Connected());
  for (int ms = 10; ms < 80; ms += 10) ASSERT_EQ(retries_.CountSilence(At(ms)), Silence::kGoesOn);
  retries_.Answered(/*is_new=*/false);
  EXPECT_EQ(retries_.CountSilence(At(80)), Silence::kOver);
  // It is silent since then, as far as this end sees.
  retries_.Broken(absl::UnavailableError("broken"), At(1000));
  ASSERT_TRUE(retries_.Connected());
  for (int ms = 1010; ms < 1080; ms += 10)
    ASSERT_EQ(retries_.CountSilence(At(ms)), Silence::kGoesOn);
  EXPECT_EQ(retries_.CountSilence(At(1080)), Silence::kGivenUp);
}

TEST_F(FeedRetriesTest, TimeInWhichNothingRanIsNotTheWorkersSilence) {
  ASSERT_TRUE(retries_.Connected());
  EXPECT_EQ(retries_.CountSilence(At(100000)), Silence::kGoesOn);  // counts as two intervals
  for (int ms = 10; ms < 60; ms += 10)
    ASSERT_EQ(retries_.CountSilence(At(100000 + ms)), Silence::kGoesOn);
  EXPECT_EQ(retries_.CountSilence(At(100060)), Silence::kGivenUp);
}

}  // namespace
}  // namespace mu
