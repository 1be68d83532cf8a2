// What is under way with a worker or a server ends when that is lost: nobody else would end it.
#include <memory>
#include <thread>
#include <vector>

#include "tests/coordinator/cluster/played_worker.h"
#include "tests/testing/held_channel.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using testing::Eventually;
using testing::HasCode;
using testing::HeldChannel;
using testing::PlayedWorker;

// Much longer than it takes.
constexpr absl::Duration kSoon = absl::Seconds(10);

class LostMembersTest : public testing::PlayedClusterTest {
 protected:
  ~LostMembersTest() override { runtime_.reset(); }  // it calls what is below

  static bool IsEnded(ServerCall& call) {
    const bool ended = Eventually([&] { return call.IsCancelled(); }, kSoon);
    call.Finish(absl::CancelledError("it was lost"));  // the runtime waits for it
    return ended;
  }
  // Waits for what a server answers.
  absl::Status Hang(const ServerApi::Call& call) {
    return call.group->Run({{0, server_, "/muster.PsServer/Any", Buffer()}}, {},
                           [](size_t, const Buffer&) { return absl::OkStatus(); });
  }
  void ExpectEnded(const std::shared_ptr<HeldChannel::Call>& call) {
    EXPECT_TRUE(Eventually([&] { return call->cancelled.load(); }, kSoon));
    call->Answer(WithKind(absl::FailedPreconditionError("its end"), pb::ERROR_STALE,
                          pb::ROLE_PSSERVER));  // which is final
  }

  const std::shared_ptr<HeldChannel> server_ = std::make_shared<HeldChannel>();
};

TEST_F(LostMembersTest, TheRunsOfAWorker) {
  Start(2);
  const auto worker = Worker(11, 0);
  const RemoteValue first = Schedule(1), second = Schedule(1);
  const auto run = worker->NextRun(), other = worker->NextRun();
  const auto looking = runtime_->Workers();  // who holds its channel, as a scan of files does
  const auto replacement = Worker(12, 0);
  EXPECT_TRUE(IsEnded(*run.call));
  EXPECT_TRUE(IsEnded(*other.call));
  for (int i = 0; i < 2; ++i) PlayedWorker::Finish(replacement->NextRun());
  MU_EXPECT_OK(runtime_->Join());
  MU_EXPECT_OK(first.Fetch());
  MU_EXPECT_OK(second.Fetch());
}

TEST_F(LostMembersTest, TheInstallationOnAWorker) {
  Start(1);
  const auto worker = Worker(11, 0);
  worker->HoldNext("InstallFunction");
  pb::FunctionProto function;
  function.set_name("another");
  runtime_->ChangeCatalog([&](Catalog& catalog) { catalog.AddFunction(Fingerprint(6), function); });
  const auto install = worker->NextHeld();
  const auto looking = runtime_->Workers();  // who holds its channel, as a scan of files does
  const auto replacement = Worker(12, 0);
  EXPECT_TRUE(IsEnded(*install));
  const RemoteValue value = Schedule(1);
  PlayedWorker::Finish(replacement->NextRun());
  MU_EXPECT_OK(value.Fetch());
}

TEST_F(LostMembersTest, TheCancellationOnAWorker) {
  Start(1);
  const auto worker = Worker(11, 0);
  const RemoteValue value = Schedule(1);
  const auto run = worker->NextRun();
  worker->HoldNext("CancelRuns");
  std::thread cancelling([&] { runtime_->CancelEverything(); });
  const auto cancel = worker->NextHeld();
  const auto looking = runtime_->Workers();  // who holds its channel, as a scan of files does
  const auto replacement = Worker(12, 0);
  EXPECT_TRUE(IsEnded(*cancel));
  cancelling.join();
  EXPECT_THAT(value.Fetch(), HasCode(absl::StatusCode::kCancelled));
}

// Its call to the servers that are there would wait for the one that is not.
TEST_F(LostMembersTest, ARestoreWithAServer) {
  servers_.restoring = [this](const ServerApi::Call& call) {
    return call.context.generation() == 2 ? Hang(call) : absl::OkStatus();
  };
  Start(1);
  RegisterServer(1);
  runtime_->EnableRecovery(RecoveryMode::kAll);
  MU_ASSERT_OK(runtime_->EnsureServers());
  runtime_->DaemonDied(1, "killed");
  RegisterServer(2);
  const auto call = server_->Next();
  runtime_->DaemonDied(2, "killed");
  ExpectEnded(call);
  RegisterServer(3);
  MU_EXPECT_OK(runtime_->EnsureServers());
  EXPECT_EQ(runtime_->Context().generation(), 3u);
}

TEST_F(LostMembersTest, ASaveWithAServer) {
  servers_.saving = [this](const ServerApi::Call& call) { return Hang(call); };
  Start(1);
  RegisterServer(1);
  runtime_->EnableRecovery(RecoveryMode::kAll);
  MU_ASSERT_OK(runtime_->EnsureServers());
  absl::Status saved;
  std::thread saving([&] {
    saved = runtime_->Run({.kind = ServerTask::Kind::kSave}, std::make_shared<TaskState>());
  });
  const auto call = server_->Next();
  runtime_->DaemonDied(1, "killed");
  ExpectEnded(call);
  saving.join();
  EXPECT_THAT(saved, HasCode(absl::StatusCode::kUnavailable));
  RegisterServer(2);
  MU_EXPECT_OK(runtime_->EnsureServers());
}

// While the cluster gathers, its loss ends nothing: whoever has seen it come must see it go.
TEST_F(LostMembersTest, AServerAsSoonAsAllHaveCome) {
  options_.start_timeout = absl::Milliseconds(50);
  for (int i = 0; i < 20; ++i) {
    Start(1);
    Notification begun, ended;
    absl::Status status;
    std::thread asking([&] {
      begun.Notify();
      status = runtime_->EnsureServers();
      ended.Notify();
    });
    begun.Wait();
    RegisterServer(1);
    runtime_->DaemonDied(1, "killed");
    EXPECT_TRUE(ended.WaitFor(kSoon));
    runtime_->Close();
    asking.join();
    runtime_.reset();
    // Lost before it was asked for anything, or afterwards, or when it had done what it was asked.
    EXPECT_TRUE(absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status) || status.ok())
        << status;
  }
}

// A newer coordinator would be seen there.
TEST_F(LostMembersTest, AWorkerWhileTheJobsDirectoryHangs) {
  struct Directory {
    Notification asked, answers;
  };
  const auto directory = std::make_shared<Directory>();  // a look may outlive the runtime
  options_.newest_epoch = [directory]() -> uint64_t {
    directory->asked.Notify();
    directory->answers.Wait();
    return 1;
  };
  options_.heartbeat = absl::Milliseconds(10);
  options_.timeout = absl::Milliseconds(200);
  Start(1);
  directory->asked.Wait();
  Notification silent, stopped;
  runtime_->SetOnSilent([&](const Member&) { silent.Notify(); });
  const auto worker = Worker(11, 0);
  EXPECT_TRUE(silent.WaitFor(kSoon));
  std::thread stopping([&] {
    runtime_->Stop();
    stopped.Notify();
  });
  EXPECT_TRUE(stopped.WaitFor(kSoon)) << "the coordinator's end waits for the directory";
  directory->answers.Notify();
  stopping.join();
}

}  // namespace
}  // namespace mu
