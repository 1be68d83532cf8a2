// Groups of functions beside training, with workers and servers that are played by the test.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/cluster/played_worker.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::PlayedClusterTest;
using testing::PlayedWorker;
using testing::StatusIs;

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

// The load itself waits for them, see CoreViews.
TEST_F(RuntimeGroupsTest, OtherValuesMayBeLoadedWhileOnlyTheyRun) {
  Start();
  auto worker = Worker(11);
  const GroupId group = runtime_->MakeGroup(nullptr);
  ScheduleIn(group);
  const auto evaluation = worker->NextRun();
  MU_EXPECT_OK(runtime_->WaitForRepeats());
  Schedule(1);
  const auto training = worker->NextRun();
  EXPECT_THAT(runtime_->WaitForRepeats(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Join first")));
  PlayedWorker::Finish(training);
  MU_ASSERT_OK(runtime_->Join());
  MU_EXPECT_OK(runtime_->WaitForRepeats());
  PlayedWorker::Finish(evaluation);
  MU_EXPECT_OK(runtime_->Join(group));
}

TEST_F(RuntimeGroupsTest, NoEpochOfTheirDataStartsWhileTheyRun) {
  Start();
  const GroupId group = runtime_->MakeGroup(nullptr);
  const RemoteValue value = runtime_->Schedule(
      {.fingerprint = Fingerprint(5), .steps = 1, .dataset = 1, .needs_version = 1, .group = group},
      {"x"});
  EXPECT_THAT(runtime_->StartEpoch(1, 0, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Cancel the group")));
  MU_EXPECT_OK(runtime_->StartEpoch(2, 0, nullptr)) << "training's, say";
  runtime_->Cancel(group);
  MU_EXPECT_OK(runtime_->StartEpoch(1, 0, nullptr));
}

TEST_F(RuntimeGroupsTest, AViewWhoseFolderIsRenamedIsLoadedFromThere) {
  Start();
  RegisterServer(4242);
  MU_ASSERT_OK(runtime_->EnsureServers());
  auto worker = Worker(11);
  std::vector<std::string> folders;
  servers_.loading_view = [&](ViewId, const ServerApi::SavedState& from) -> absl::Status {
    folders.push_back(from.directory);
    if (folders.size() > 1) return absl::OkStatus();
    const auto rename = [] { return absl::StatusOr<std::string>("best.1"); };
    MU_RETURN_IF_ERROR(checkpoints_.Rename("best", rename).status());
    return absl::DataLossError("the file of another checkpoint");
  };
  auto files = std::make_shared<ViewFiles>();
  files->held = checkpoints_.Hold("best");
  const RemoteValue value = ScheduleIn(runtime_->MakeGroup(std::move(files)));
  PlayedWorker::Finish(worker->NextRun());
  MU_EXPECT_OK(value.Fetch());
  EXPECT_THAT(folders, ElementsAre("best", "best.1"));
  runtime_.reset();  // the servers use what ends here
}

TEST_F(RuntimeGroupsTest, ThoseOfOneCheckpointShareItsView) {
  Start();
  RegisterServer(4242);
  MU_ASSERT_OK(runtime_->EnsureServers());
  auto worker = Worker(11);
  std::vector<ViewId> loaded;
  servers_.loading_view = [&](ViewId view, const ServerApi::SavedState&) {
    loaded.push_back(view);
    return absl::OkStatus();
  };
  const auto make = [&](const std::string& folder, uint32_t sum) {
    auto files = std::make_shared<ViewFiles>();
    files->held = checkpoints_.Hold(folder);
    files->manifest.add_files()->set_crc32c(sum);
    return runtime_->MakeGroup(std::move(files));
  };
  const auto view_of = [&](GroupId group) {
    const RemoteValue value = ScheduleIn(group);
    const auto run = worker->NextRun();
    PlayedWorker::Finish(run);
    MU_EXPECT_OK(value.Fetch());
    return run.request.view();
  };
  const GroupId first = make("a", 1), second = make("a", 1);
  const uint64_t shared = view_of(first);
  EXPECT_EQ(view_of(second), shared);
  EXPECT_THAT(loaded, ElementsAre(ViewId(shared)));
  EXPECT_NE(view_of(make("b", 1)), shared) << "another folder";
  EXPECT_NE(view_of(make("a", 2)), shared) << "it holds another checkpoint by now";
  EXPECT_EQ(loaded.size(), 3u);
  runtime_->DropGroup(first);
  EXPECT_EQ(view_of(second), shared) << "it still has it";
  EXPECT_EQ(loaded.size(), 3u);
  runtime_->DropGroup(second);
  EXPECT_NE(view_of(make("a", 1)), shared) << "that one has been dropped";
  EXPECT_EQ(loaded.size(), 4u);
  runtime_.reset();  // the servers use what ends here
}

}  // namespace
}  // namespace mu
