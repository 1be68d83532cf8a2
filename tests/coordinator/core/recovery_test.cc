// The rules of recovery, as transcripts of events and the actions that follow.
#include "tests/coordinator/core/recovery_transcript.h"

namespace mu {
namespace {

using Transcript = testing::RecoveryTranscript;

TEST(Recovery, AllServersGoBackToTheNewestCheckpoint) {
  Transcript t({.servers = 2});
  t.Start();
  t.Committed(1);
  t.Committed(2);
  t.Lost(1);
  t.Ready(1);
  t.Done(1);
  t.Lost(0);
  EXPECT_EQ(t.text, R"(
start
committed 1
committed 2
lost 1
  pause
ready 1
  roll back to checkpoint 2
  restore server 0 from checkpoint 2 in generation 1
  restore server 1 from checkpoint 2 in generation 1
done in 1
  resume in generation 1
lost 0
  pause
)");
}

TEST(Recovery, WithoutACheckpointTheInitialValuesAreRestored) {
  Transcript t({.servers = 1});
  t.Lost(0);
  t.Ready(0);
  t.Start();
  t.Lost(0);
  t.Ready(0);
  t.Done(1);
  EXPECT_EQ(t.text, R"(
lost 0
ready 0
start
lost 0
  pause
ready 0
  roll back to initial values
  restore server 0 from initial values in generation 1
done in 1
  resume in generation 1
)");
}

TEST(Recovery, OneLostBetweenConfigurationAndStartIsRecovered) {
  Transcript t({.servers = 1});
  t.Lost(0);
  t.Start();
  t.Ready(0);
  EXPECT_EQ(t.text, R"(
lost 0
start
  pause
ready 0
  roll back to initial values
  restore server 0 from initial values in generation 1
)");
}

TEST(Recovery, ALossDuringARoundBeginsAnother) {
  Transcript t({.servers = 3});
  t.Start();
  t.Committed(1);
  t.Lost(0);
  t.Ready(0);
  t.Lost(2);
  t.Done(1);
  t.Ready(2);
  t.Done(1);
  t.Done(2);
  EXPECT_EQ(t.text, R"(
start
committed 1
lost 0
  pause
ready 0
  roll back to checkpoint 1
  restore server 0 from checkpoint 1 in generation 1
  restore server 1 from checkpoint 1 in generation 1
  restore server 2 from checkpoint 1 in generation 1
lost 2
done in 1
ready 2
  restore server 0 from checkpoint 1 in generation 2
  restore server 1 from checkpoint 1 in generation 2
  restore server 2 from checkpoint 1 in generation 2
done in 1
done in 2
  resume in generation 2
)");
}

TEST(Recovery, ABadCheckpointIsReplacedByTheOlderOneUntilNoneIsLeft) {
  Transcript t({.servers = 2});
  t.Start();
  t.Committed(1);
  t.Committed(2);
  t.Lost(0);
  t.Ready(0);
  t.Bad(1);
  t.Bad(1);
  t.Bad(2);
  t.Ready(0);
  EXPECT_EQ(t.text, R"(
start
committed 1
committed 2
lost 0
  pause
ready 0
  roll back to checkpoint 2
  restore server 0 from checkpoint 2 in generation 1
  restore server 1 from checkpoint 2 in generation 1
bad checkpoint in 1
  roll back to checkpoint 1
  restore server 0 from checkpoint 1 in generation 2
  restore server 1 from checkpoint 1 in generation 2
bad checkpoint in 1
bad checkpoint in 2
  give up
ready 0
)");
}

TEST(Recovery, AServerThatDoesNotAnswerIsAskedAgainInANewRound) {
  Transcript t({.servers = 2});
  t.Start();
  t.Lost(0);
  t.Ready(0);
  t("no answer", t.recovery.RestoreFailed(Generation(1), RestoreFault::kTryAgain));
  t.Done(1);
  t("retry", t.recovery.Retry());
  t("retry", t.recovery.Retry());
  t.Done(2);
  EXPECT_EQ(t.text, R"(
start
lost 0
  pause
ready 0
  roll back to initial values
  restore server 0 from initial values in generation 1
  restore server 1 from initial values in generation 1
no answer
done in 1
retry
  restore server 0 from initial values in generation 2
  restore server 1 from initial values in generation 2
retry
done in 2
  resume in generation 2
)");
}

TEST(Recovery, ShardRestoresOnlyWhatWasLost) {
  Transcript t({.servers = 3, .mode = RecoveryMode::kShard});
  t.Start();
  t.Committed(1);
  t.Committed(2);
  t.Lost(1);
  t.Ready(1);
  t.Bad(1);
  t.Lost(2);
  t.Ready(2);
  t.Done(3);
  EXPECT_EQ(t.text, R"(
start
committed 1
committed 2
lost 1
  pause
ready 1
  keep server 0 in generation 1
  restore server 1 from checkpoint 2 in generation 1
  keep server 2 in generation 1
bad checkpoint in 1
  keep server 0 in generation 2
  restore server 1 from checkpoint 1 in generation 2
  keep server 2 in generation 2
lost 2
ready 2
  keep server 0 in generation 3
  restore server 1 from checkpoint 1 in generation 3
  restore server 2 from checkpoint 1 in generation 3
done in 3
  resume in generation 3
)");
}

// Values are being loaded in a generation that was given out for that.
TEST(Recovery, ARoundTakesAGenerationThatNobodyWasGiven) {
  Transcript t({.servers = 1});
  t.Start();
  t.recovery.GivenOut(Generation(7));
  t.Lost(0);
  t.Ready(0);
  EXPECT_EQ(t.text, R"(
start
lost 0
  pause
ready 0
  roll back to initial values
  restore server 0 from initial values in generation 8
)");
}

// Another checkpoint is committed while servers restore from one that turns out to be bad.
TEST(Recovery, ABadCheckpointIsNotTheOneThatCameMeanwhile) {
  Transcript t({.servers = 1});
  t.Start();
  t.Committed(1);
  t.Lost(0);
  t.Ready(0);
  t.Committed(2);
  t.Bad(1);
  t.Done(2);
  EXPECT_EQ(t.text, R"(
start
committed 1
lost 0
  pause
ready 0
  roll back to checkpoint 1
  restore server 0 from checkpoint 1 in generation 1
committed 2
bad checkpoint in 1
  roll back to checkpoint 2
  restore server 0 from checkpoint 2 in generation 2
done in 2
  resume in generation 2
)");
}

}  // namespace
}  // namespace mu
