// visitation: none: every worker goes through all records by itself.
#include <algorithm>
#include <map>
#include <numeric>

#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::Numbers;
using testing::TestCluster;
using testing::WriteFile;

constexpr int64_t kRecords = 200, kBatch = 8;
constexpr uint32_t kPasses = kRecords / kBatch;  // steps of one pass over the data

absl::StatusOr<Function> DefineLook(TestCluster& cluster, uint32_t epochs) {
  const std::string file = cluster.directory() + "/numbers.csv";
  WriteFile(file, Numbers(0, kRecords));
  MU_ASSIGN_OR_RETURN(const Dataset data,
                      cluster.coordinator().CreateDataset(Csv({file})
                                                              .Id("id", kRecords, 0)
                                                              .Batch(kBatch)
                                                              .BlockRecords(16)
                                                              .Shuffle(64)
                                                              .Epochs(epochs)
                                                              .PerWorker()));
  return cluster.coordinator().DefineFunction("look", [&](FunctionBuilder& f) {
    f.Return("ids", f.NextBatch(data)["id"]);
    f.Return("worker", f.WorkerIndex());
  });
}

// What each worker has read, in its order.
using ReadBy = std::map<int64_t, std::vector<int64_t>>;

absl::Status Add(const RemoteValue& value, ReadBy* read) {
  MU_ASSIGN_OR_RETURN(const FunctionResult result, value.Fetch());
  for (size_t step = 0; step < result.steps(); ++step) {
    MU_ASSIGN_OR_RETURN(const Tensor worker, result.Get(step, "worker"));
    MU_ASSIGN_OR_RETURN(const Tensor ids, result.Get(step, "ids"));
    std::vector<int64_t>& its = (*read)[*worker.data<int64_t>()];
    its.insert(its.end(), ids.data<int64_t>(), ids.data<int64_t>() + ids.elements());
  }
  return absl::OkStatus();
}

std::vector<int64_t> Pass(const std::vector<int64_t>& read, int64_t pass) {
  return {read.begin() + pass * kRecords, read.begin() + (pass + 1) * kRecords};
}

TEST(Conformance, PerWorkerDatasetDiffers) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 1}));
  MU_ASSERT_OK_AND_ASSIGN(const Function look, DefineLook(*cluster, /*epochs=*/0));
  ReadBy read;
  const auto passes = [&](int64_t worker) {
    return static_cast<int64_t>(read[worker].size()) / kRecords;
  };
  // Until each has gone through the data twice, however the functions fall to them.
  while (passes(0) < 2 || passes(1) < 2) {
    std::vector<RemoteValue> values;
    for (int i = 0; i < 20; ++i)
      values.push_back(cluster->coordinator().Schedule(look, {.steps = 3}));
    MU_ASSERT_OK(cluster->coordinator().Join());
    for (const RemoteValue& value : values) MU_ASSERT_OK(Add(value, &read));
  }
  std::vector<int64_t> all(kRecords);
  std::iota(all.begin(), all.end(), 0);
  for (const int64_t worker : {0, 1}) {
    for (const int64_t pass : {0, 1}) {
      EXPECT_THAT(Pass(read[worker], pass), ::testing::UnorderedElementsAreArray(all))
          << "worker " << worker << ", pass " << pass;
    }
    EXPECT_NE(Pass(read[worker], 0), Pass(read[worker], 1)) << "each pass is shuffled anew";
  }
  EXPECT_NE(Pass(read[0], 0), Pass(read[1], 0)) << "the workers shuffle differently";
}

TEST(Conformance, PerWorkerDatasetEnds) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const Function look, DefineLook(*cluster, /*epochs=*/2));
  const RemoteValue most = c.Schedule(look, {.steps = 2 * kPasses - 1});
  const RemoteValue last = c.Schedule(look, {.steps = 3});
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, last.Fetch());
  EXPECT_EQ(result.steps(), 1u) << "what was left";
  EXPECT_TRUE(result.end_of_data());
  const RemoteValue beyond = c.Schedule(look);
  EXPECT_THAT(c.Join(),
              testing::StatusIs(absl::StatusCode::kOutOfRange, ::testing::HasSubstr("2 times")));
  EXPECT_THAT(beyond.Fetch(), testing::HasCode(absl::StatusCode::kOutOfRange));
  MU_EXPECT_OK(c.Join()) << "it was reported once";
  EXPECT_EQ(c.Stats().samples, static_cast<uint64_t>(2 * kRecords));
}

// Such data has no place in checkpoints, and holds up nothing: every step still counts once.
TEST(Conformance, PerWorkerDatasetSurvivesLosses) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, {.directory = cluster->directory() + "/checkpoints",
                                 .every = absl::InfiniteDuration(),
                                 .every_steps = 300});
  MU_ASSERT_OK_AND_ASSIGN(
      const testing::CheckedJob job,
      testing::CheckedJob::Create(
          *cluster, {.records = 4000, .batch = 4, .visitation = pb::VISITATION_NONE}));
  job.ScheduleAll(20);
  job.WaitForSteps(150);
  cluster->KillWorker(0);
  MU_ASSERT_OK(cluster->StartWorker(0));
  job.WaitForSteps(400);
  cluster->KillServer(1);
  MU_ASSERT_OK(cluster->StartServer(1));
  job.WaitForSteps(700);
  cluster->KillWorker(1);  // for good: the rest is read by the other one
  job.JoinAndCheck();
  // Two checkpoints cover all, whichever of them is damaged.
  for (int i = 0; i < 2; ++i) MU_ASSERT_OK(checkpointer.TakeNow());
  EXPECT_EQ(c.runtime().Context().low_water(), 1000u / 20 + 1)
      << "nothing is held of what is finished";
}

}  // namespace
}  // namespace mu
