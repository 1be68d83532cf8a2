// What a checkpoint says of the job: how far it is, and what of it runs again after a restore.
#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using testing::CoreDriver;
using Kind = ServerTask::Kind;

constexpr CheckpointNumber kFirst{1};

// Everything but the end of a checkpoint: its position is what the manifest says now.
void SaveUpToTheManifest(CoreDriver* d) {
  ASSERT_EQ(d->Want(2, {.kind = Kind::kSave}), "save 1");
  ASSERT_EQ(d->Step(event::Saved{kFirst}), "write manifest");
}

// One function of three steps, a server that is lost when two of them are done, and its
// replacement: both run again.
void LoseTwoOfThreeSteps(CoreDriver* d) {
  d->Serve(1);
  d->Schedule(3);
  for (uint32_t step = 0; step < 2; ++step) d->Result(1, step);
  d->Step(event::DaemonDied{100});
  d->Join(pb::ROLE_PSSERVER, 200, 0);
  d->Restored(2);
  d->Routing(2, 2);
  ASSERT_EQ(d->Installed(0, 10), "start 1 on 0 from 0");
}

TEST(CoreCheckpoints, StepsThatRunAgainAreNotInACheckpointUntilTheirRepeatIs) {
  for (uint32_t repeated = 0; repeated <= 3; ++repeated) {
    SCOPED_TRACE(repeated);
    CoreDriver d;
    LoseTwoOfThreeSteps(&d);
    for (uint32_t step = 0; step < repeated; ++step) d.Result(1, step);
    SaveUpToTheManifest(&d);
    const JobPosition position = d.core.PositionAfterCuts();
    EXPECT_EQ(position.steps, repeated);
    EXPECT_EQ(position.samples, 4 * repeated);
    EXPECT_EQ(position.functions.unfinished.at(FunctionId(1)).next_step, repeated);
    EXPECT_EQ(d.core.queue().Find(FunctionId(1))->delivered, repeated < 3 ? 2u : 3u)
        << "users were told of these";
  }
}

TEST(CoreCheckpoints, ResultsThatComeWhileServersSaveAreNotInTheCheckpoint) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule(3);
  d.Result(1, 0);
  ASSERT_EQ(d.Want(2, {.kind = Kind::kSave}), "save 1");
  d.Result(1, 1);
  d.Result(1, 2);
  d.Ended(1);
  d.Schedule();
  ASSERT_EQ(d.Step(event::Saved{kFirst}), "write manifest");
  const JobPosition position = d.core.PositionAfterCuts();
  EXPECT_EQ(position.steps, 1u);
  EXPECT_EQ(position.functions.unfinished.at(FunctionId(1)).next_step, 1u) << "though finished";
  EXPECT_EQ(position.functions.unfinished.at(FunctionId(2)).next_step, 0u);
  EXPECT_EQ(position.functions.next_id, FunctionId(3));
  d.Step(event::ManifestWritten{kFirst});
  d.Step(event::DaemonDied{100});
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 200, 0),
            "server 0 joins; 2 steps of 1 functions since checkpoint 1 will run again; round 2 "
            "from 1: restore 0");
}

// Shells say so instead of writing the manifest.
TEST(CoreCheckpoints, ANewerCoordinatorEndsTheCheckpointThatIsUnderWay) {
  CoreDriver d;
  d.Serve(1);
  SaveUpToTheManifest(&d);
  EXPECT_THAT(d.Step(event::EpochSeen{CoordinatorEpoch(2)}),
              ::testing::StartsWith("aborted 1; done 2 ABORTED; interrupt"));
  EXPECT_EQ(d.Step(event::ManifestWritten{kFirst}), "") << "it counts for nothing";
}

}  // namespace
}  // namespace mu
