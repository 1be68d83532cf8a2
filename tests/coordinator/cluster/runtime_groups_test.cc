// Groups of functions beside training, with workers and servers that are played by the test.
#include "tests/coordinator/cluster/played_worker.h"

namespace mu {
namespace {

using testing::HasCode;
using testing::PlayedClusterTest;
using testing::PlayedWorker;

class RuntimeGroupsTest : public PlayedClusterTest {
 protected:
  RemoteValue ScheduleIn(GroupId group) {
    return runtime_->Schedule(
        {.fingerprint = Fingerprint(5), .steps = 1, .needs_version = 1, .group = group}, {"x"});
  }
};

TEST_F(RuntimeGroupsTest, CancelWaitsForNoWorker) {
  Start();
  auto worker = Worker(11);
  const GroupId group = runtime_->MakeGroup(nullptr);
  const RemoteValue cancelled = ScheduleIn(group);
  const auto run = worker->NextRun();  // the worker is at its step, and stays there
  runtime_->Cancel(group);
  EXPECT_THAT(cancelled.Fetch(), HasCode(absl::StatusCode::kCancelled));
  MU_EXPECT_OK(runtime_->Join(group));
  const RemoteValue next = ScheduleIn(group);
  PlayedWorker::Finish(worker->NextRun());
  MU_EXPECT_OK(next.Fetch()) << "the group can be used again";
  PlayedWorker::Finish(run);
  EXPECT_THAT(cancelled.Fetch(), HasCode(absl::StatusCode::kCancelled)) << "nobody gets its result";
}

}  // namespace
}  // namespace mu
