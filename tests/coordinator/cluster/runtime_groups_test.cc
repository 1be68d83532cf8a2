// Groups of functions beside training, with workers and servers that are played by the test.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/cluster/played_worker.h"
#include "tests/coordinator/core/planned_leases.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::PlayedClusterTest;
using testing::PlayedWorker;
using testing::StatusIs;

// Servers that drop a view only when the test says so.
class HoldingServers final : public ServerApi {
 public:
  explicit HoldingServers(absl::Status first_load) : first_load_(std::move(first_load)) {}

  absl::Status Configure(const Call&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<pb::RestoreReply>> Restore(const Call&, const SavedState&,
                                                        const std::vector<bool>&) override {
    return std::vector<pb::RestoreReply>(1);
  }
  absl::StatusOr<std::vector<pb::SaveReply>> Save(const Call&, const std::string&) override {
    return std::vector<pb::SaveReply>(1);
  }
  std::map<uint32_t, absl::Status> Fence(const pb::RequestContext&,
                                         const std::vector<uint32_t>&) override {
    return {};
  }
  absl::StatusOr<std::vector<uint32_t>> CommitRound(const Call&, const RoundSet&) override {
    return std::vector<uint32_t>(1);
  }
  absl::Status LoadView(const Call&, ViewId, const SavedState&) override {
    if (++loads_ == 1) return first_load_;
    if (loads_ == 2) loads_another.Notify();
    return absl::OkStatus();
  }
  absl::Status DropView(const Call&, ViewId) override {
    if (++drops_ == 1) drops.Notify();
    may_drop.Wait();
    return absl::OkStatus();
  }
  absl::Status Assign(const pb::RequestContext&, FunctionId, const Assignment&) override {
    return absl::OkStatus();
  }

  Notification loads_another, drops, may_drop;

 private:
  const absl::Status first_load_;
  int loads_ = 0, drops_ = 0;  // the runtime has one call for a view at a time
};

class RuntimeGroupsTest : public PlayedClusterTest {
 protected:
  void StartWith(ServerApi* servers) {
    Runtime::Options options;
    options.transport = transport_.get();
    options.listen = "";
    options.job = JobId(9);
    options.epoch = CoordinatorEpoch(1);
    options.telemetry = &telemetry_;
    options.server_api = servers;
    options.checkpoints = &checkpoints_;
    MU_ASSERT_OK_AND_ASSIGN(runtime_, Runtime::Start(options));
    runtime_->ChangeCatalog(
        [](Catalog& catalog) { catalog.AddFunction(Fingerprint(5), pb::FunctionProto()); });
  }
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

// The first call would start on the worker together with the one that finds no data.
TEST_F(RuntimeGroupsTest, OneThatIsOutOfDataEndsWhatWouldStartBesideIt) {
  Start();
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.set_name("small");
  dataset.set_batch_size(10);
  dataset.set_block_records(10);
  dataset.set_epochs(1);
  dataset.set_visitation(pb::VISITATION_NONE);
  runtime_->AddDataset(testing::LayoutOf(std::move(dataset), {10}), nullptr);
  const GroupId group = runtime_->MakeGroup(nullptr);
  const auto schedule = [&] {
    return runtime_->Schedule({.fingerprint = Fingerprint(5),
                               .steps = 1,
                               .dataset = 1,
                               .needs_version = 1,
                               .group = group},
                              {"x"});
  };
  const RemoteValue first = schedule(), second = schedule();
  auto worker = Worker(11);
  EXPECT_THAT(second.Fetch(), HasCode(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(first.Fetch(), HasCode(absl::StatusCode::kCancelled));
  EXPECT_THAT(runtime_->Join(group),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("'small' 1 times")));
  const RemoteValue next = ScheduleIn(group);
  const auto run = worker->NextRun();
  EXPECT_EQ(run.request.function(), next.id().value()) << "it is the first that the worker gets";
  PlayedWorker::Finish(run);
  MU_EXPECT_OK(next.Fetch());
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

// Nor one that could not be loaded, of which servers drop what they may have.
TEST_F(RuntimeGroupsTest, AViewThatIsBeingDroppedIsNotShared) {
  for (const absl::Status& first_load : {absl::OkStatus(), absl::DataLossError("damaged")}) {
    SCOPED_TRACE(first_load.ToString());
    HoldingServers servers(first_load);
    StartWith(&servers);
    RegisterServer(4242);
    MU_EXPECT_OK(runtime_->EnsureServers());
    auto worker = Worker(11);
    const auto make = [&] {
      auto files = std::make_shared<ViewFiles>();
      files->held = checkpoints_.Hold("best");
      return runtime_->MakeGroup(std::move(files));
    };
    const GroupId first = make();
    if (first_load.ok()) {
      const RemoteValue value = ScheduleIn(first);
      PlayedWorker::Finish(worker->NextRun());
      MU_EXPECT_OK(value.Fetch());
      runtime_->DropGroup(first);
    }
    EXPECT_TRUE(servers.drops.WaitFor(absl::Seconds(5)));
    const GroupId next = make();
    servers.may_drop.Notify();
    // A function would wait for ever for a view that the servers do not have.
    const bool loads_another = servers.loads_another.WaitFor(absl::Seconds(5));
    EXPECT_TRUE(loads_another);
    if (loads_another) {
      const RemoteValue value = ScheduleIn(next);
      PlayedWorker::Finish(worker->NextRun());
      MU_EXPECT_OK(value.Fetch());
    }
    runtime_.reset();  // the servers end here
  }
}

}  // namespace
}  // namespace mu
