// Functions that workers refuse to install.
#include "tests/coordinator/cluster/played_worker.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using testing::HasCode;
using testing::PlayedWorker;
using RefusedFunctionsTest = testing::PlayedClusterTest;

// The program hears of it once, however many workers refuse it, and all of them run the others.
TEST_F(RefusedFunctionsTest, DoNotKeepWorkersFromTheOthers) {
  Start(1);
  pb::FunctionProto function;
  function.set_name("refused");
  runtime_->ChangeCatalog([&](Catalog& catalog) { catalog.AddFunction(Fingerprint(6), function); });
  auto first = Worker(11, 0, {6});
  EXPECT_THAT(
      [&] {
        absl::StatusOr<bool> done = true;
        while (done.ok()) done = runtime_->Done();
        return done.status();
      }(),
      HasCode(absl::StatusCode::kInvalidArgument));
  const RemoteValue before = Schedule(1);
  PlayedWorker::Finish(first->NextRun());
  MU_EXPECT_OK(before.Fetch());
  // A worker that comes later disturbs nothing that runs.
  const RemoteValue running = Schedule(1);
  const auto run = first->NextRun();
  auto second = Worker(12, 1, {6});
  const RemoteValue other = Schedule(1);
  PlayedWorker::Finish(second->NextRun());
  PlayedWorker::Finish(run);
  MU_EXPECT_OK(other.Fetch());
  MU_EXPECT_OK(running.Fetch());
  MU_EXPECT_OK(runtime_->Join());
  // Whoever calls it is told why it cannot be.
  const RemoteValue called = runtime_->Schedule({.fingerprint = Fingerprint(6), .steps = 1}, {"x"});
  EXPECT_THAT(called.Fetch(), HasCode(absl::StatusCode::kInvalidArgument));
  MU_EXPECT_OK(runtime_->Join()) << "once";
  EXPECT_TRUE(runtime_->Stats().failures.empty());
}

// A worker that comes while an error waits for whoever joins does not take its place.
TEST_F(RefusedFunctionsTest, DoNotHideAnEarlierError) {
  Start(1);
  pb::FunctionProto function;
  function.set_name("refused");
  runtime_->ChangeCatalog([&](Catalog& catalog) { catalog.AddFunction(Fingerprint(6), function); });
  auto first = Worker(11, 0);
  const RemoteValue failing = Schedule(1);
  const auto run = first->NextRun();
  run.call->Finish(testing::UsersError("the first"));
  EXPECT_TRUE(testing::Eventually([&] { return first->cancelled_below == 2; }));
  auto second = Worker(12, 1, {6});
  // Whether that cancels once more depends on whether the first cancellation is over.
  EXPECT_TRUE(testing::Eventually([&] { return second->refused > 0; }));
  EXPECT_THAT(runtime_->Join(), testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                                  ::testing::HasSubstr("the first")));
}

}  // namespace
}  // namespace mu
