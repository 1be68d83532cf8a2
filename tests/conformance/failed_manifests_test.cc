// Manifests that cannot be written.
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using testing::OnRequest;
using testing::TestCluster;
using testing::WaitWhile;

// Servers go back to the last good checkpoint, however many have failed since.
TEST(Conformance, ManifestsThatFailPushOutNoGoodCheckpoint) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 4000}));
  const auto schedule = [&](uint64_t steps) {
    for (uint64_t step = 0; step < steps; step += 10) c.Schedule(job.step(), {.steps = 10});
  };
  constexpr uint64_t kFirst = 600, kSecond = 100, kThird = 300;
  schedule(kFirst);
  MU_ASSERT_OK(c.Join());
  std::string good;
  for (int i = 0; i < 2; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(good, checkpointer.TakeNow());
  }
  schedule(kSecond);
  MU_ASSERT_OK(c.Join());
  for (int i = 0; i < 8; ++i) {
    const std::string directory = absl::StrCat(cluster->directory(), "/failed-", i);
    // While a server is stopped the save waits for it; a folder takes the manifest's name.
    cluster->StopServer(1);
    absl::Status saved;
    std::thread save([&] { saved = c.Save(directory).status(); });
    WaitWhile([&] { return !DirectoryExists(directory); });
    MU_EXPECT_OK(MakeDirectories(JoinPath(directory, kManifestName)));
    cluster->ContinueServer(1);
    save.join();
    EXPECT_THAT(saved.message(), ::testing::HasSubstr(kManifestName));
  }
  cluster->KillServer(0);
  MU_ASSERT_OK(cluster->StartServer(0));
  schedule(kThird);
  job.JoinAndCheck();
  const RuntimeStats stats = c.Stats();
  ASSERT_EQ(stats.failures.size(), 1u);
  EXPECT_THAT(stats.failures[0].message, ::testing::HasSubstr(good));
  EXPECT_EQ(stats.failures[0].steps_repeated, kSecond);
}

}  // namespace
}  // namespace mu
