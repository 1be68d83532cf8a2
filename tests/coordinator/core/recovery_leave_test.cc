// Servers that ask for their leave, as transcripts of events and the actions that follow.
#include <optional>

#include "tests/coordinator/core/recovery_transcript.h"

namespace mu {
namespace {

using Transcript = testing::RecoveryTranscript;

TEST(Recovery, WhoLeavesTakesNothingAlong) {
  Transcript t({.servers = 2});
  t.Start();
  t.Committed(1);
  t("leaving 1", t.recovery.ServerLeaving(1));
  t("leaving 1", t.recovery.ServerLeaving(1));
  t.Done(1);
  t.Committed(2);
  t("taken 2", t.recovery.LeaveCheckpoint(CheckpointNumber(2)));
  t.Lost(1);
  t.Lost(0);
  t.Ready(1);
  t.Ready(0);
  t.Done(2);
  EXPECT_EQ(t.text, R"(
start
committed 1
leaving 1
  pause
  keep server 0 in generation 1
  keep server 1 in generation 1
leaving 1
done in 1
  take a checkpoint in generation 1
committed 2
taken 2
  let server 1 go
lost 1
lost 0
ready 1
ready 0
  restore server 0 from checkpoint 2 in generation 2
  restore server 1 from checkpoint 2 in generation 2
done in 2
  resume in generation 2
)");
}

// Repeats are cancelled while the checkpoint's manifest is being written: the checkpoint is good,
// but it does not hold them.
TEST(Recovery, AStateThatIsLostWhileALeavesCheckpointIsTakenIsNotCovered) {
  Transcript t({.servers = 2});
  t.Start();
  t("leaving 1", t.recovery.ServerLeaving(1));
  t.Done(1);
  t("repeats are cancelled", t.recovery.StateLost());
  t.Committed(1);
  t("taken 1", t.recovery.LeaveCheckpoint(CheckpointNumber(1)));
  t.Ready(1);
  EXPECT_EQ(t.text, R"(
start
leaving 1
  pause
  keep server 0 in generation 1
  keep server 1 in generation 1
done in 1
  take a checkpoint in generation 1
repeats are cancelled
committed 1
taken 1
  let server 1 go
ready 1
  roll back to checkpoint 1
  restore server 0 from checkpoint 1 in generation 2
  restore server 1 from checkpoint 1 in generation 2
)");
}

TEST(Recovery, ALeaveWhoseCheckpointFailsIsALoss) {
  Transcript t({.servers = 2});
  t.Start();
  t("leaving 0", t.recovery.ServerLeaving(0));
  t("leaving 1", t.recovery.ServerLeaving(1));
  t.Done(1);
  t("failed", t.recovery.LeaveCheckpoint(std::nullopt));
  t.Ready(0);
  t.Ready(1);
  EXPECT_EQ(t.text, R"(
start
leaving 0
  pause
  keep server 0 in generation 1
  keep server 1 in generation 1
leaving 1
done in 1
  take a checkpoint in generation 1
failed
  let server 0 go
  let server 1 go
ready 0
ready 1
  roll back to initial values
  restore server 0 from initial values in generation 2
  restore server 1 from initial values in generation 2
)");
}

TEST(Recovery, WhoLeavesWhileAnotherIsRecoveredWaitsForIt) {
  Transcript t({.servers = 3});
  t.Start();
  t.Committed(1);
  t.Lost(0);
  t("leaving 1", t.recovery.ServerLeaving(1));
  t("leaving 1", t.recovery.ServerLeaving(1));
  t.Ready(0);
  t("leaving 2", t.recovery.ServerLeaving(2));
  t.Done(1);
  t.Committed(2);
  t("taken 2", t.recovery.LeaveCheckpoint(CheckpointNumber(2)));
  t.Ready(1);
  t.Ready(2);
  t.Done(2);
  EXPECT_EQ(t.text, R"(
start
committed 1
lost 0
  pause
leaving 1
leaving 1
ready 0
  roll back to checkpoint 1
  restore server 0 from checkpoint 1 in generation 1
  restore server 1 from checkpoint 1 in generation 1
  restore server 2 from checkpoint 1 in generation 1
leaving 2
done in 1
  take a checkpoint in generation 1
committed 2
taken 2
  let server 1 go
  let server 2 go
ready 1
ready 2
  keep server 0 in generation 2
  restore server 1 from checkpoint 2 in generation 2
  restore server 2 from checkpoint 2 in generation 2
done in 2
  resume in generation 2
)");
}

TEST(Recovery, WhoWaitsForItsLeaveAndDiesIsLost) {
  Transcript t({.servers = 2});
  t.Start();
  t.Lost(0);
  t("leaving 1", t.recovery.ServerLeaving(1));
  t.Lost(1);
  t.Ready(0);
  t.Ready(1);
  t.Done(1);
  EXPECT_EQ(t.text, R"(
start
lost 0
  pause
leaving 1
lost 1
ready 0
ready 1
  roll back to initial values
  restore server 0 from initial values in generation 1
  restore server 1 from initial values in generation 1
done in 1
  resume in generation 1
)");
}

// The checkpoint that was taken for the leave turns out to be bad: back to the one before, which
// the queue must hear of although it was there already.
TEST(Recovery, ABadCheckpointOfALeaveIsRolledBack) {
  Transcript t({.servers = 2});
  t.Start();
  t.Committed(1);
  t.Lost(0);
  t("leaving 1", t.recovery.ServerLeaving(1));
  t.Ready(0);
  t.Done(1);
  t.Committed(2);
  t("taken 2", t.recovery.LeaveCheckpoint(CheckpointNumber(2)));
  t.Ready(1);
  t.Bad(2);
  EXPECT_EQ(t.text, R"(
start
committed 1
lost 0
  pause
leaving 1
ready 0
  roll back to checkpoint 1
  restore server 0 from checkpoint 1 in generation 1
  restore server 1 from checkpoint 1 in generation 1
done in 1
  take a checkpoint in generation 1
committed 2
taken 2
  let server 1 go
ready 1
  keep server 0 in generation 2
  restore server 1 from checkpoint 2 in generation 2
bad checkpoint in 2
  roll back to checkpoint 1
  restore server 0 from checkpoint 1 in generation 3
  restore server 1 from checkpoint 1 in generation 3
)");
}

TEST(Recovery, NobodyWaitsForItsLeaveWhenAllIsLost) {
  Transcript t({.servers = 2});
  t.Start();
  t.Lost(0);
  t("leaving 1", t.recovery.ServerLeaving(1));
  t.Ready(0);
  t.Bad(1);
  EXPECT_EQ(t.text, R"(
start
lost 0
  pause
leaving 1
ready 0
  roll back to initial values
  restore server 0 from initial values in generation 1
  restore server 1 from initial values in generation 1
bad checkpoint in 1
  give up
  let server 1 go
)");
}

}  // namespace
}  // namespace mu
