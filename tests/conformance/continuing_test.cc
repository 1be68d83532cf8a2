// A coordinator that was started again, before Restore() has told it where the job stands: what its
// servers hold then is nothing that a checkpoint may say.
#include <memory>
#include <string>
#include <thread>

#include "common/base/steady_now.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using ::testing::ElementsAre;
using testing::HasCode;
using testing::Losses;
using testing::OnRequest;
using testing::TestCluster;

constexpr CheckedJob::Size kSize = {.records = 8000};

// A job that has stopped after its checkpoint, some way through, and a coordinator that is to
// continue it.
class Continuing : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(cluster_, TestCluster::Start({.workers = 2, .ps = 2}));
    directory_ = cluster_->directory() + "/checkpoints";
    {
      Coordinator& c = cluster_->coordinator();
      Checkpointer checkpointer(&c, OnRequest(directory_));
      MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster_, kSize));
      job.ScheduleAll(20);
      job.WaitForSteps(300);
      MU_ASSERT_OK_AND_ASSIGN(checkpoint_, checkpointer.TakeNow());
    }
    cluster_->DestroyCoordinator();
    MU_ASSERT_OK(cluster_->StartCoordinator());
  }
  Coordinator& c() { return cluster_->coordinator(); }
  void RestoreAndCheck(const CheckedJob& job) {
    MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, c().Restore());
    EXPECT_EQ(restored.directory, checkpoint_);
    EXPECT_GE(restored.manifest.position().steps(), 300u);
    job.JoinAndCheck();
  }

  std::unique_ptr<TestCluster> cluster_;
  std::string directory_, checkpoint_;
};

TEST(Checkpointer, TakesOneEverySoOften) {
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(
      &c, {.directory = cluster->directory() + "/checkpoints", .every = absl::Milliseconds(200)});
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {}));
  job.ScheduleAll(20);
  const absl::Time begin = SteadyNow();
  testing::WaitWhile([&] { return checkpointer.taken() < 4; });
  EXPECT_GE(SteadyNow() - begin, absl::Milliseconds(400)) << "not all the time";
  job.JoinAndCheck();
}

TEST_F(Continuing, CheckpointsBeforeTheJobContinues) {
  // Due all the time, and keeps but one.
  Checkpointer checkpointer(
      &c(), {.directory = directory_, .every = absl::Milliseconds(1), .every_steps = 1, .keep = 1});
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster_, kSize));
  EXPECT_THAT(checkpointer.TakeNow(), HasCode(absl::StatusCode::kFailedPrecondition));
  // Long enough for the checkpointer's next looks.
  EXPECT_FALSE(
      testing::Eventually([&] { return checkpointer.taken() > 0; }, absl::Milliseconds(500)));
  EXPECT_THAT(ListCheckpoints(directory_).value(), ElementsAre(checkpoint_));
  RestoreAndCheck(job);
  MU_EXPECT_OK(checkpointer.TakeNow());
}

// It has read the initial values, which are still all that the servers hold.
TEST_F(Continuing, CheckpointsAfterAFunctionThatOnlyReads) {
  Checkpointer checkpointer(
      &c(), {.directory = directory_, .every = absl::Milliseconds(1), .every_steps = 1, .keep = 1});
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster_, kSize));
  MU_ASSERT_OK_AND_ASSIGN(const Function reads, c().DefineFunction("reads", [](FunctionBuilder& f) {
    f.Return("x", f.Arg("x"));
  }));
  MU_ASSERT_OK(c().Schedule(reads, {.args = {{"x", 1}}}).Fetch().status());
  EXPECT_FALSE(c().begun());
  EXPECT_THAT(checkpointer.TakeNow(), HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(
      testing::Eventually([&] { return checkpointer.taken() > 0; }, absl::Milliseconds(500)));
  EXPECT_THAT(c().Restore(), HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(ListCheckpoints(directory_).value(), ElementsAre(checkpoint_));
}

TEST_F(Continuing, AProgramThatBeginsAnewTakesCheckpoints) {
  Checkpointer checkpointer(&c(), OnRequest(directory_));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster_, kSize));
  EXPECT_THAT(checkpointer.TakeNow(), HasCode(absl::StatusCode::kFailedPrecondition));
  c().StartFresh();
  MU_ASSERT_OK_AND_ASSIGN(const std::string initial, checkpointer.TakeNow());
  EXPECT_THAT(ListCheckpoints(directory_).value(), ElementsAre(checkpoint_, initial));
}

TEST_F(Continuing, PsLeavesBeforeTheJobContinues) {
  Checkpointer checkpointer(&c(), OnRequest(directory_));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster_, kSize));
  EXPECT_TRUE(cluster_->TerminateServer(1).ok());
  MU_ASSERT_OK(cluster_->StartServer(1));
  EXPECT_THAT(ListCheckpoints(directory_).value(), ElementsAre(checkpoint_));
  RestoreAndCheck(job);
  EXPECT_THAT(Losses(c(), pb::ROLE_PSSERVER), ElementsAre("left"));
}

// Again and again while Restore() is at work, with a checkpoint due all the time.
TEST_F(Continuing, PsLeavesWhileTheJobContinues) {
  for (int life = 0; life < 4; ++life) {
    SCOPED_TRACE(life);
    auto checkpointer = std::make_unique<Checkpointer>(
        &c(),
        CheckpointerOptions{.directory = directory_, .every = absl::Milliseconds(1), .keep = 1});
    MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster_, kSize));
    absl::StatusOr<RestoredJob> restored;
    std::thread program([&] { restored = c().Restore(); });
    EXPECT_TRUE(cluster_->TerminateServer(life % 2).ok());
    MU_EXPECT_OK(cluster_->StartServer(life % 2));
    program.join();
    MU_ASSERT_OK(restored);
    EXPECT_GE(restored->manifest.position().steps(), 300u);
    if (life == 3) return job.JoinAndCheck();
    checkpointer.reset();  // before the coordinator that it uses
    cluster_->DestroyCoordinator();
    MU_ASSERT_OK(cluster_->StartCoordinator());
  }
}

}  // namespace
}  // namespace mu
