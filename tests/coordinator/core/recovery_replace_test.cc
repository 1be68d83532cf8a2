// A server that cannot read a good checkpoint is replaced, as transcripts of events and actions.
#include "tests/coordinator/core/recovery_transcript.h"

namespace mu {
namespace {

using Transcript = testing::RecoveryTranscript;

TEST(Recovery, AServerAtFaultIsReplacedAsOftenAsItTakesAndNoCheckpointIsGivenUp) {
  Transcript t({.servers = 2});
  t.Start();
  t.Committed(1);
  t.Committed(2);
  t.Lost(1);
  t.Ready(1);
  t.AtFault(1, 1);
  t.Lost(1);  // what the shell makes of it
  t("retry", t.recovery.Retry());
  t.Done(1);
  t.Ready(1);
  t.AtFault(1, 2);
  t.AtFault(1, 2);
  t.Ready(1);
  t.Done(3);
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
server 1 at fault in 1
  replace server 1
lost 1
retry
done in 1
ready 1
  restore server 0 from checkpoint 2 in generation 2
  restore server 1 from checkpoint 2 in generation 2
server 1 at fault in 2
  replace server 1
server 1 at fault in 2
ready 1
  restore server 0 from checkpoint 2 in generation 3
  restore server 1 from checkpoint 2 in generation 3
done in 3
  resume in generation 3
)");
  EXPECT_EQ(t.recovery.points().size(), 2u);
}

// Any server may be the one: those that were up all the time as well.
TEST(Recovery, AServerThatWasNotLostMayBeAtFault) {
  Transcript t({.servers = 2});
  t.Start();
  t.Committed(1);
  t.Lost(1);
  t.Ready(1);
  t.AtFault(0, 1);
  t.Done(1);
  t.Ready(0);
  t.Done(2);
  EXPECT_EQ(t.text, R"(
start
committed 1
lost 1
  pause
ready 1
  roll back to checkpoint 1
  restore server 0 from checkpoint 1 in generation 1
  restore server 1 from checkpoint 1 in generation 1
server 0 at fault in 1
  replace server 0
done in 1
ready 0
  restore server 0 from checkpoint 1 in generation 2
  restore server 1 from checkpoint 1 in generation 2
done in 2
  resume in generation 2
)");
}

TEST(Recovery, InModeShardTheOthersKeepTheirStateWhileAServerIsReplaced) {
  Transcript t({.servers = 2, .mode = RecoveryMode::kShard});
  t.Start();
  t.Committed(1);
  t.Lost(1);
  t.Ready(1);
  t.AtFault(1, 1);
  t.Ready(1);
  t.Done(2);
  EXPECT_EQ(t.text, R"(
start
committed 1
lost 1
  pause
ready 1
  keep server 0 in generation 1
  restore server 1 from checkpoint 1 in generation 1
server 1 at fault in 1
  replace server 1
ready 1
  keep server 0 in generation 2
  restore server 1 from checkpoint 1 in generation 2
done in 2
  resume in generation 2
)");
}

}  // namespace
}  // namespace mu
