// Servers go back to a checkpoint whose folder gets another name meanwhile (Save with `replace`).
// Another checkpoint has its name at once, which must be taken for it by nobody.
#include <gmock/gmock.h>

#include <latch>
#include <string>
#include <vector>

#include "common/base/cannot_read.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "tests/coordinator/cluster/played_worker.h"

namespace mu {
namespace {

using ::testing::ElementsAre;

class RenamedCheckpointTest : public testing::PlayedClusterTest {
 protected:
  ~RenamedCheckpointTest() override { runtime_.reset(); }  // it calls what is below

  void SetUp() override {
    MU_ASSERT_OK(directory_);
    servers_.restored = [this](const std::string& directory) { from_.push_back(directory); };
    Start();
    RegisterServer(1);
    runtime_->EnableRecovery(RecoveryMode::kAll);
    MU_ASSERT_OK(runtime_->EnsureServers());
    auto state = std::make_shared<TaskState>();
    state->claim = [this] { return absl::StatusOr<std::string>(best_); };
    MU_ASSERT_OK(runtime_->Run({.kind = ServerTask::Kind::kSave}, state));
  }
  // As LinkCheckpoint does it.
  void Replace() {
    MU_EXPECT_OK(checkpoints_.Rename(best_, [this]() -> absl::StatusOr<std::string> {
      MU_RETURN_IF_ERROR(RenameFile(best_, renamed_));
      MU_RETURN_IF_ERROR(MakeDirectories(best_));
      pb::CheckpointProto other;
      other.set_format_version(kCheckpointFormat);
      other.set_number(77);
      MU_RETURN_IF_ERROR(WriteManifest(best_, other));
      return renamed_;
    }));
  }
  void LoseServer(uint32_t pid) {
    runtime_->DaemonDied(pid, "killed");
    RegisterServer(pid + 1);
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("renamed-checkpoint");
  const std::string best_ = JoinPath(directory_->path(), "best"), renamed_ = best_ + ".1";
  std::vector<std::string> from_;  // what servers were restored from
};

TEST_F(RenamedCheckpointTest, WhileServersLoadIt) {
  servers_.restoring = [this](const ServerApi::Call&) {
    if (from_.size() == 1) Replace();
    return absl::OkStatus();
  };
  LoseServer(1);
  MU_ASSERT_OK(runtime_->EnsureServers());
  EXPECT_THAT(from_, ElementsAre(best_, renamed_)) << "they may have loaded the other one";
}

// No server and no checkpoint is at fault.
TEST_F(RenamedCheckpointTest, WhileServersLookForItsFiles) {
  servers_.restoring = [this](const ServerApi::Call&) -> absl::Status {
    if (from_.size() > 1) return absl::OkStatus();
    Replace();
    const absl::Status unread = CannotRead(absl::NotFoundError("cannot open ps-0"));
    pb::ErrorDetail detail = DetailOf(unread).value_or(pb::ErrorDetail());
    detail.set_role(pb::ROLE_PSSERVER);
    return WithDetail(unread, detail);
  };
  LoseServer(1);
  MU_ASSERT_OK(runtime_->EnsureServers());
  EXPECT_THAT(from_, ElementsAre(best_, renamed_));
  EXPECT_EQ(runtime_->Stats().failures.size(), 1u) << "the server that was killed";
}

// The round has been decided, and waits for the one before to end.
TEST_F(RenamedCheckpointTest, BeforeServersAreAsked) {
  std::latch began{1}, ends{1};
  servers_.restoring = [&](const ServerApi::Call&) -> absl::Status {
    if (from_.size() > 1) return absl::OkStatus();
    began.count_down();
    ends.wait();
    return absl::CancelledError("a server was lost");
  };
  LoseServer(1);
  began.wait();
  LoseServer(2);
  runtime_->Context();  // after the step that has begun the next round
  Replace();
  ends.count_down();
  MU_ASSERT_OK(runtime_->EnsureServers());
  EXPECT_THAT(from_, ElementsAre(best_, renamed_));
}

// A program's own Restore(DIR). What it has loaded is what servers go back to later.
TEST_F(RenamedCheckpointTest, WhileAProgramLoadsIt) {
  servers_.restoring = [this](const ServerApi::Call&) {
    if (from_.size() == 1) Replace();
    return absl::OkStatus();
  };
  auto state = std::make_shared<TaskState>();
  state->folder = best_;
  state->held = checkpoints_.Hold(best_);
  MU_ASSERT_OK(runtime_->Run({.kind = ServerTask::Kind::kLoad}, state));
  EXPECT_EQ(from_.front(), best_);
  EXPECT_EQ(from_.back(), renamed_);
  from_.clear();
  servers_.restoring = nullptr;
  LoseServer(1);
  MU_ASSERT_OK(runtime_->EnsureServers());
  EXPECT_THAT(from_, ElementsAre(renamed_));
}

}  // namespace
}  // namespace mu
