// Parameter servers that are killed while their state is written or read.
#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using testing::Losses;
using testing::OnRequest;
using testing::TestCluster;
using testing::WaitWhile;

// A kill is meant to fall into something that takes a while; the machine may be too quick for it.
constexpr int kMostTries = 20;

// A state that takes a while to write and to read.
absl::Status CreateBallast(Coordinator& c) {
  return c
      .CreateVariable(
          {.name = "ballast", .shape = Shape({16'000'000}), .partitioner = FixedShards{16}})
      .status();
}

TEST(Conformance, PsKilledWhileSaving) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(CreateBallast(c));
  const std::string directory = cluster->directory() + "/checkpoints";
  std::atomic<uint64_t> requests{0};
  CheckpointerOptions options = OnRequest(directory);
  options.requests = &requests;
  Checkpointer checkpointer(&c, options);
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 8000}));
  job.ScheduleAll(50);
  job.WaitForSteps(100);
  MU_ASSERT_OK(checkpointer.TakeNow());
  size_t good = 1;
  std::string interrupted;
  for (int number = 2; interrupted.empty() && number < 2 + kMostTries; ++number) {
    const std::string path = absl::StrFormat("%s/ckpt-%08d", directory, number);
    ++requests;
    // A file of it is there before it is complete.
    WaitWhile([&] {
      const auto files = ListDirectory(path);
      return !files.ok() || files->empty();
    });
    cluster->KillServer(0);
    MU_EXPECT_OK(cluster->StartServer(0));
    WaitWhile([&] { return checkpointer.taken() == good && checkpointer.failed() == 0; });
    if (checkpointer.failed() > 0) {
      interrupted = path;
    } else {
      ++good;
    }
  }
  ASSERT_NE(interrupted, "") << "every save was over before the kill";
  // Nobody asks for it again: it is taken when the server is back.
  WaitWhile([&] { return checkpointer.taken() == good; });
  job.JoinAndCheck();
  EXPECT_EQ(checkpointer.failed(), 1u);
  MU_ASSERT_OK_AND_ASSIGN(const auto complete, ListCheckpoints(directory));
  EXPECT_EQ(complete.size(), good + 1);
  EXPECT_THAT(complete, ::testing::Not(::testing::Contains(interrupted)));
  for (const std::string& checkpoint : complete) {
    MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(checkpoint));
    MU_EXPECT_OK(VerifyCheckpoint(checkpoint, manifest));
  }
}

// SIGTERM to a server while that is saved which a program ends with: it is taken again when the
// server has left, and another one is there.
TEST(Conformance, PsDrainsWhileTheLastCheckpointIsSaved) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(CreateBallast(c));
  const std::string directory = cluster->directory() + "/checkpoints";
  Checkpointer checkpointer(&c, OnRequest(directory));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 400}));
  job.ScheduleAll(50);
  for (int number = 1; checkpointer.failed() == 0 && number < 2 * kMostTries; number += 2) {
    const std::string path = absl::StrFormat("%s/ckpt-%08d", directory, number);
    absl::StatusOr<std::string> whole;
    std::thread saves([&] { whole = checkpointer.TakeWhole(); });
    // A file of it is there before it is complete.
    WaitWhile([&] {
      const auto files = ListDirectory(path);
      return !files.ok() || files->empty();
    });
    const ExitStatus status = cluster->TerminateServer(0);
    EXPECT_EQ(status.code, 0) << status.ToString();
    MU_EXPECT_OK(cluster->StartServer(0));
    saves.join();
    MU_ASSERT_OK(whole.status());
    MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(*whole));
    MU_EXPECT_OK(VerifyCheckpoint(*whole, manifest));
  }
  EXPECT_EQ(checkpointer.failed(), 1u) << "every save was over before the server left";
  EXPECT_THAT(Losses(c, pb::ROLE_PSSERVER), ::testing::Each("left"));
  job.JoinAndCheck();
}

// Server 0 is lost and, while both are being restored, server 1, twice if it can be. Returns how
// many of those losses fell into a restore that was under way.
size_t KillWhileRestoring(TestCluster& cluster) {
  Coordinator& c = cluster.coordinator();
  const size_t before = c.Stats().failures.size();
  cluster.KillServer(0);
  MU_EXPECT_OK(cluster.StartServer(0));
  for (int kill = 0; kill < 2; ++kill) {
    WaitWhile([&] { return c.Stats().servers < 2; });  // from here on they restore
    cluster.KillServer(1);
    MU_EXPECT_OK(cluster.StartServer(1));
  }
  WaitWhile([&] {
    const RuntimeStats stats = c.Stats();
    return stats.failures.size() < before + 3 || stats.failures.back().recovered_seconds < 0;
  });
  const std::vector<MemberFailure> failures = c.Stats().failures;
  EXPECT_EQ(failures.size(), before + 3) << "each loss was seen";
  const MemberFailure& opened = failures[before];
  EXPECT_EQ(opened.index, 0u);
  size_t midway = 0;
  for (size_t i = before + 1; i < failures.size(); ++i) {
    EXPECT_EQ(failures[i].index, 1u);
    if (failures[i].at_seconds < opened.at_seconds + opened.recovered_seconds) ++midway;
  }
  return midway;
}

TEST(Conformance, PsKilledWhileRestoring) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(CreateBallast(c));
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 4000}));
  job.ScheduleAll(50);
  job.WaitForSteps(100);
  MU_ASSERT_OK(checkpointer.TakeNow());
  job.WaitForSteps(200);
  size_t tries = 0, midway = 0;
  for (; midway < 2 && tries < kMostTries; ++tries) midway = KillWhileRestoring(*cluster);
  EXPECT_EQ(midway, 2u) << "no two kills in a row fell into a restore";
  job.JoinAndCheck();
  EXPECT_EQ(Losses(c, pb::ROLE_PSSERVER).size(), 3 * tries);
}

}  // namespace
}  // namespace mu
