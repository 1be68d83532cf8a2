// What the runtime says about now, and of when: generations in answers to daemons, versions of
// installations, what is in a manifest, and who may write one.
#include <atomic>
#include <memory>
#include <string>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "tests/coordinator/cluster/played_worker.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using testing::HasCode;
using testing::PlayedWorker;

class RuntimeMarksTest : public testing::PlayedClusterTest {
 protected:
  void SetUp() override { MU_ASSERT_OK(directory_); }
  ~RuntimeMarksTest() override { runtime_.reset(); }  // it calls what is below

  void AddFunction(uint64_t fingerprint) {
    pb::FunctionProto function;
    function.set_name("step");
    runtime_->ChangeCatalog(
        [&](Catalog& catalog) { catalog.AddFunction(Fingerprint(fingerprint), function); });
  }
  pb::HeartbeatReply Heartbeat(uint32_t pid) {
    pb::HeartbeatRequest request;
    request.set_job(9);
    request.set_epoch(1);
    request.set_role(pb::ROLE_PSSERVER);
    request.set_incarnation(pid);
    const auto reply =
        Call<pb::HeartbeatReply>(*transport_->Connect(runtime_->address(), pb::ROLE_COORDINATOR),
                                 "/muster.Coordinator/Heartbeat", request);
    MU_EXPECT_OK(reply);
    return reply.value_or(pb::HeartbeatReply());
  }
  std::shared_ptr<TaskState> CheckpointInto(const std::string& folder) {
    auto state = runtime_->NumberedCheckpoint();
    state->claim = [folder] { return absl::StatusOr<std::string>(folder); };
    return state;
  }
  std::string Folder() const { return directory_->path() + "/ckpt-00000001"; }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("muster-runtime");
};

// A server whose state is of an older one does not serve until it is restored.
TEST_F(RuntimeMarksTest, HeartbeatsNameTheGenerationThatServersMayServe) {
  Start();
  RegisterServer(1);
  runtime_->EnableRecovery(RecoveryMode::kAll);
  MU_ASSERT_OK(runtime_->EnsureServers());
  EXPECT_EQ(Heartbeat(1).generation(), 1u);
  EXPECT_EQ(Heartbeat(1).low_water(), runtime_->Context().low_water());
  EXPECT_EQ(Heartbeat(1).lease_ms(), 10'000u);
  runtime_->DaemonDied(1, "killed");
  RegisterServer(2);
  MU_ASSERT_OK(runtime_->EnsureServers());
  EXPECT_EQ(Heartbeat(2).generation(), 2u);
}

// Certificates are of roles: who names none could speak for anybody.
TEST_F(RuntimeMarksTest, WhoNamesNoRoleIsRefused) {
  Start();
  const auto worker = Worker(11, 0);
  const auto channel = transport_->Connect(runtime_->address(), pb::ROLE_COORDINATOR);
  pb::LeaveRequest leave;
  leave.set_incarnation(11);
  for (const pb::Role role :
       {pb::ROLE_UNSPECIFIED, pb::ROLE_COORDINATOR, static_cast<pb::Role>(7)}) {
    leave.set_role(role);
    const absl::Status left =
        Call<pb::LeaveReply>(*channel, "/muster.Coordinator/Leave", leave).status();
    EXPECT_THAT(left, HasCode(absl::StatusCode::kInvalidArgument)) << role;
    EXPECT_EQ(KindOf(left), pb::ERROR_USER);
  }
  pb::HeartbeatRequest beat;
  EXPECT_THAT(Call<pb::HeartbeatReply>(*channel, "/muster.Coordinator/Heartbeat", beat),
              HasCode(absl::StatusCode::kInvalidArgument));
  pb::RegisterRequest request;
  EXPECT_THAT(Call<pb::RegisterReply>(*channel, "/muster.Coordinator/Register", request),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(runtime_->Stats().workers_ready, 1u);
}

// A worker would execute a run that names none in whichever it knows then.
TEST_F(RuntimeMarksTest, RunsNameTheGenerationFromTheFirstOneOn) {
  Start();
  RegisterServer(1);
  MU_ASSERT_OK(runtime_->EnsureServers());
  const auto worker = Worker(11);
  const RemoteValue value = Schedule(1);
  const auto run = worker->NextRun();
  EXPECT_EQ(run.request.context().generation(), 1u);
  PlayedWorker::Finish(run);
  MU_EXPECT_OK(value.Fetch());
}

TEST_F(RuntimeMarksTest, HeartbeatsNameTheLowWaterMark) {
  Start();
  const auto worker = Worker(11);
  RegisterServer(1);
  const RemoteValue value = Schedule(1);
  PlayedWorker::Finish(worker->NextRun());
  MU_ASSERT_OK(runtime_->Join());
  EXPECT_EQ(Heartbeat(1).low_water(), value.id().value() + 1);
}

TEST_F(RuntimeMarksTest, WhatIsCreatedDuringAnInstallationIsInstalledNext) {
  Start(1);
  const auto worker = Worker(11);
  const RemoteValue first = Schedule(1);
  PlayedWorker::Finish(worker->NextRun());  // it has the first function
  MU_ASSERT_OK(first.Fetch());
  ASSERT_EQ(worker->installed, 1);
  worker->HoldNext("InstallFunction");
  AddFunction(6);
  const auto install = worker->NextHeld();
  AddFunction(7);
  install->Finish(absl::OkStatus());
  const RemoteValue value =
      runtime_->Schedule({.fingerprint = Fingerprint(7), .steps = 1, .needs_version = 3}, {"x"});
  const auto run = worker->NextRun();
  EXPECT_EQ(run.request.fingerprint(), 7u);
  EXPECT_EQ(worker->installed, 2) << "the one that was held is not counted";
  PlayedWorker::Finish(run);
  MU_EXPECT_OK(value.Fetch());
}

// What a caller takes over from the manifest of another checkpoint is not in this one's folder.
TEST_F(RuntimeMarksTest, AManifestNamesTheFilesOfItsOwnCheckpoint) {
  Start();
  RegisterServer(1);
  MU_ASSERT_OK(runtime_->EnsureServers());
  const auto state = CheckpointInto(Folder());
  for (int i = 0; i < 2; ++i) {
    state->manifest.add_files()->set_name("of another one");
    state->manifest.add_updates(77);
  }
  state->manifest.mutable_position()->add_functions();
  state->manifest.set_user_state("the caller's");
  MU_ASSERT_OK(runtime_->Run({.kind = ServerTask::Kind::kSave}, state));
  MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto written, ReadManifest(Folder()));
  ASSERT_EQ(written.files_size(), 1) << "there is one server";
  EXPECT_EQ(written.files(0).name(), "");
  ASSERT_EQ(written.updates_size(), 1);
  EXPECT_EQ(written.updates(0), 0u);
  EXPECT_EQ(written.position().functions_size(), 0);
  EXPECT_EQ(written.user_state(), "the caller's");
  EXPECT_EQ(written.epoch(), 1u);
  EXPECT_EQ(written.job(), 9u);
}

// The newer one may have restored from an older checkpoint already. Only the job's directory knows
// of it yet: this process was stopped, say, while the servers saved.
TEST_F(RuntimeMarksTest, ASupersededCoordinatorCompletesNoCheckpointAndCleansNothing) {
  const auto newest = std::make_shared<std::atomic<uint64_t>>(1);
  const auto looks = std::make_shared<std::atomic<int>>(0);
  options_.newest_epoch = [newest, looks] {
    const uint64_t epoch = newest->load();
    ++*looks;
    return epoch;
  };
  options_.heartbeat = absl::Hours(1);  // who looks all the time has done so once, and no more
  servers_.saving = [&](const ServerApi::Call&) {
    *newest = 2;
    return WriteFileAtomic(JoinPath(Folder(), "ps-0.safetensors"), "of the newer coordinator");
  };
  Start();
  testing::WaitWhile([&] { return *looks == 0; });
  RegisterServer(1);
  MU_ASSERT_OK(runtime_->EnsureServers());
  EXPECT_THAT(runtime_->Run({.kind = ServerTask::Kind::kSave}, CheckpointInto(Folder())),
              HasCode(absl::StatusCode::kAborted));
  EXPECT_FALSE(FileExists(JoinPath(Folder(), kManifestName)));
  EXPECT_TRUE(FileExists(JoinPath(Folder(), "ps-0.safetensors")));
}

}  // namespace
}  // namespace mu
