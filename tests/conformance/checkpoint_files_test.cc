// Checkpoints that are damaged, foreign, or cannot be written.
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::OnRequest;
using testing::StatusIs;
using testing::TestCluster;

void Overwrite(const std::string& path, const std::function<void(std::string*)>& change) {
  MU_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(path));
  change(&bytes);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Two checkpoints are taken on the way, the newer one when everything so far is done; it is damaged
// and a server is killed. The damage is named when the checkpoint is asked for, recovery takes the
// older one, and nothing is lost or repeated.
void RecoversFromTheOlderOne(const std::function<void(const std::string& directory)>& damage,
                             absl::StatusCode code, const std::string& named) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 4000}));
  constexpr uint64_t kInOlder = 150, kHalf = 500;  // of the steps
  const auto schedule = [&](uint64_t steps) {
    for (uint64_t step = 0; step < steps; step += 10) c.Schedule(job.step(), {.steps = 10});
  };
  schedule(kInOlder);
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK(checkpointer.TakeNow());
  schedule(kHalf - kInOlder);
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const std::string newest, checkpointer.TakeNow());
  damage(newest);
  cluster->KillServer(1);
  MU_ASSERT_OK(cluster->StartServer(1));
  schedule(kHalf);  // nothing of it is done before the servers are restored
  job.JoinAndCheck();
  const RuntimeStats stats = c.Stats();
  ASSERT_EQ(stats.failures.size(), 1u);
  // The newer one contained all of the first half, and there was nothing else to repeat.
  EXPECT_EQ(stats.failures[0].steps_repeated, kHalf - kInOlder)
      << "what the older one lacks, and no step of the other half";
  EXPECT_THAT(c.Restore(newest), StatusIs(code, HasSubstr(named)));
}

TEST(Conformance, TornShard) {
  RecoversFromTheOlderOne(
      [](const std::string& directory) {
        Overwrite(directory + "/ps-0.safetensors",
                  [](std::string* bytes) { bytes->resize(bytes->size() / 2); });
      },
      absl::StatusCode::kDataLoss, "ps-0.safetensors");
}

TEST(Conformance, FlippedBit) {
  RecoversFromTheOlderOne(
      [](const std::string& directory) {
        Overwrite(directory + "/ps-1.safetensors", [](std::string* bytes) { bytes->back() ^= 1; });
      },
      absl::StatusCode::kDataLoss, "ps-1.safetensors");
}

TEST(Conformance, TruncatedManifest) {
  RecoversFromTheOlderOne(
      [](const std::string& directory) {
        Overwrite(directory + "/manifest.json",
                  [](std::string* bytes) { bytes->resize(bytes->size() / 2); });
      },
      absl::StatusCode::kDataLoss, "manifest.json");
}

TEST(Conformance, MissingShard) {
  RecoversFromTheOlderOne(
      [](const std::string& directory) {
        MU_ASSERT_OK(RemoveFile(directory + "/ps-0.safetensors"));
      },
      absl::StatusCode::kNotFound, "ps-0.safetensors");
}

TEST(Conformance, NoGoodCheckpointEndsTheJob) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 40000}));
  job.ScheduleAll(10);
  for (int i = 0; i < 2; ++i) {
    job.WaitForSteps(100 * static_cast<uint64_t>(i + 1));
    MU_ASSERT_OK_AND_ASSIGN(const std::string directory, checkpointer.TakeNow());
    MU_ASSERT_OK(RemoveFile(directory + "/ps-0.safetensors"));
  }
  cluster->KillServer(0);
  MU_ASSERT_OK(cluster->StartServer(0));
  const absl::Status status = c.Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ps-0.safetensors")));
  EXPECT_EQ(KindOf(status), pb::ERROR_MACHINE) << "exit code 4";
}

// Server 0 has loaded it and server 1 has not, and no checkpoint is there to go back to.
TEST(Conformance, FunctionsRunAfterALoadThatFailedWithoutRecovery) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, testing::StartCounting({.workers = 1, .ps = 2}));
  Coordinator& c = counting.c();
  c.Schedule(counting.count, {.steps = 3});
  MU_ASSERT_OK(c.Join());
  const std::string directory = counting.cluster->directory() + "/damaged";
  MU_ASSERT_OK(c.Save(directory));
  Overwrite(directory + "/ps-1.safetensors", [](std::string* bytes) { bytes->back() ^= 1; });
  EXPECT_THAT(c.Restore(directory),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ps-1.safetensors")));
  c.Schedule(counting.count, {.steps = 2});
  MU_ASSERT_OK(c.Join());
  EXPECT_EQ(counting.Count(), 2) << "from the initial values, on all servers";
}

TEST(Conformance, CheckpointOfAnotherJob) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(c.CreateVariable({.name = "weights", .shape = Shape({3})}));
  const std::string directory = cluster->directory() + "/other";
  MU_ASSERT_OK(c.Save(directory));
  EXPECT_THAT(c.Save(directory), testing::HasCode(absl::StatusCode::kAlreadyExists))
      << "a server lost meanwhile would cost both";
  MU_ASSERT_OK_AND_ASSIGN(auto another, TestCluster::Start({.workers = 1, .ps = 1}));
  MU_ASSERT_OK(another->coordinator().CreateVariable({.name = "weights", .shape = Shape({4})}));
  MU_ASSERT_OK(another->coordinator().CreateVariable({.name = "bias", .shape = Shape({4})}));
  const absl::Status refused = another->coordinator().Restore(directory).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("'bias' is not in the checkpoint")));
  EXPECT_THAT(refused.message(), HasSubstr("'weights' is variable float32[4]"));
}

TEST(Conformance, RestoreOnOtherPsCount) {
  for (const auto& [from, to] : {std::pair{2, 3}, std::pair{3, 2}, std::pair{4, 1}}) {
    SCOPED_TRACE(absl::StrCat(from, " to ", to));
    const auto create = [](Coordinator& c, Variable* variable,
                           EmbeddingTable* table) -> absl::Status {
      MU_ASSIGN_OR_RETURN(*variable, c.CreateVariable({.name = "v",
                                                       .shape = Shape({100}),
                                                       .dtype = kInt64,
                                                       .partitioner = FixedShards{10}}));
      MU_ASSIGN_OR_RETURN(*table, c.CreateEmbeddingTable({.name = "t", .rows = 1000, .dim = 4}));
      return absl::OkStatus();
    };
    MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("muster-test"));
    std::vector<int64_t> ids(1000), values(100);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * i);
    Tensor rows;
    {
      MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = from}));
      Coordinator& c = cluster->coordinator();
      Variable variable;
      EmbeddingTable table;
      MU_ASSERT_OK(create(c, &variable, &table));
      MU_ASSERT_OK(c.Assign(variable, Tensor::Of<int64_t>(Shape({100}), values)));
      testing::WriteFile(cluster->directory() + "/ids.csv", testing::Numbers(0, 1000));
      MU_ASSERT_OK_AND_ASSIGN(
          const Dataset data,
          c.CreateDataset(Csv({cluster->directory() + "/ids.csv"}).Id("id", 0, 0).Batch(50)));
      MU_ASSERT_OK_AND_ASSIGN(
          const Function train, c.DefineFunction("train", [&](FunctionBuilder& f) {
            f.Minimize(ReduceSum(Square(EmbeddingLookup(table, f.NextBatch(data)["id"]))));
          }));
      c.Schedule(train, {.steps = 20});
      MU_ASSERT_OK(c.Join());
      MU_ASSERT_OK_AND_ASSIGN(rows, c.ReadRows(table, ids));
      MU_ASSERT_OK(c.Save(directory.path()));
    }
    MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = to}));
    Coordinator& c = cluster->coordinator();
    Variable variable;
    EmbeddingTable table;
    MU_ASSERT_OK(create(c, &variable, &table));
    MU_ASSERT_OK(c.Restore(directory.path()));
    MU_ASSERT_OK_AND_ASSIGN(const Tensor read, c.Read(variable));
    EXPECT_THAT(read.flat<int64_t>(), ::testing::ElementsAreArray(values));
    MU_ASSERT_OK_AND_ASSIGN(const Tensor loaded, c.ReadRows(table, ids));
    EXPECT_THAT(loaded.flat<float>(), ::testing::ElementsAreArray(rows.flat<float>()));
  }
}

TEST(Conformance, DiskFullOnSave) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  const std::string disk = cluster->directory() + "/disk";
  MU_ASSERT_OK(MakeDirectories(disk));
  if (geteuid() != 0 || mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=3m") != 0) {
    GTEST_SKIP() << "a small file system can be mounted by root only";
  }
  // Whatever happens: nothing may stay mounted.
  struct Unmount {
    const std::string& disk;
    ~Unmount() { umount2(disk.c_str(), MNT_DETACH); }
  } unmount{disk};
  Coordinator& c = cluster->coordinator();
  // 2 MB: there is room for one
  MU_ASSERT_OK(c.CreateVariable({.name = "ballast", .shape = Shape({500'000})}));
  Checkpointer checkpointer(&c, OnRequest(disk));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 4000}));
  job.ScheduleAll(10);
  job.WaitForSteps(100);
  MU_ASSERT_OK_AND_ASSIGN(const std::string good, checkpointer.TakeNow());
  job.WaitForSteps(300);
  EXPECT_THAT(checkpointer.TakeNow(), HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(checkpointer.failed(), 1u);
  MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(good));
  MU_EXPECT_OK(VerifyCheckpoint(good, manifest));
  cluster->KillServer(0);
  MU_ASSERT_OK(cluster->StartServer(0));
  job.JoinAndCheck();
}

TEST(Conformance, UnwritableDirectory) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  const std::string directory = cluster->directory() + "/checkpoints";
  // Root may write anywhere, so the folder is moved away and something else has its name.
  const std::string kept = cluster->directory() + "/kept";
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(directory));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 4000}));
  job.ScheduleAll(10);
  job.WaitForSteps(100);
  MU_ASSERT_OK(checkpointer.TakeNow());
  MU_ASSERT_OK(RenameFile(directory, kept));
  testing::WriteFile(directory, "a file");
  job.WaitForSteps(300);
  EXPECT_THAT(checkpointer.TakeNow().status().message(), HasSubstr(directory));
  EXPECT_EQ(checkpointer.failed(), 1u);
  MU_ASSERT_OK(RemoveFile(directory));
  MU_ASSERT_OK(RenameFile(kept, directory));
  cluster->KillServer(1);
  MU_ASSERT_OK(cluster->StartServer(1));
  job.JoinAndCheck();
}

}  // namespace
}  // namespace mu
