// visitation: none: every worker goes through all records by itself.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "coordinator/training/checkpointer.h"
#include "coordinator/training/train_loop.h"
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

// Calls of a group that all come while there is no worker: one of them takes what there is.
TEST(Conformance, PerWorkerDatasetThatEndsIsTheErrorOfItsGroup) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const Function look, DefineLook(*cluster, /*epochs=*/1));
  MU_ASSERT_OK_AND_ASSIGN(const Variable counter,
                          c.CreateVariable({.name = "counter", .dtype = kInt64}));
  MU_ASSERT_OK_AND_ASSIGN(const Function count, c.DefineFunction("count", [&](FunctionBuilder&) {
    AssignAdd(counter, 1);
  }));
  MU_ASSERT_OK(c.Schedule(count).Fetch().status());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup other, c.CreateGroup());
  // A worker looks through the file.
  MU_ASSERT_OK(c.Schedule(look, {.group = other}).Fetch().status());
  cluster->TerminateWorker(0);
  testing::WaitForWorkers(c, 0);
  MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup group, c.CreateGroup());
  std::vector<RemoteValue> values;
  values.push_back(c.Schedule(look, {.steps = kPasses, .group = group}));
  for (int i = 0; i < 3; ++i) values.push_back(c.Schedule(look, {.group = group}));
  MU_ASSERT_OK(cluster->StartWorker(0));
  EXPECT_THAT(c.Join(group),
              testing::StatusIs(absl::StatusCode::kOutOfRange, ::testing::HasSubstr("1 times")));
  for (const RemoteValue& value : values) EXPECT_FALSE(value.Fetch().ok());
  MU_EXPECT_OK(c.Schedule(count).Fetch().status()) << "training goes on";
  MU_ASSERT_OK_AND_ASSIGN(const Tensor read, c.Read(counter));
  EXPECT_EQ(*read.data<int64_t>(), 2);
}

// A job whose every step adds 1.
struct CountedTraining {
  Dataset data;
  Variable counter;
  Function step;
  uint64_t epoch = 0;  // its steps
  Coordinator* c = nullptr;

  static absl::StatusOr<CountedTraining> Create(TestCluster& cluster) {
    CountedTraining job = {.c = &cluster.coordinator()};
    const std::string file = cluster.directory() + "/numbers.csv";
    WriteFile(file, Numbers(0, kRecords));
    MU_ASSIGN_OR_RETURN(
        job.data,
        job.c->CreateDataset(
            Csv({file}).Id("id", kRecords, 0).Batch(kBatch).Shuffle(64).Name("own").PerWorker()));
    MU_ASSIGN_OR_RETURN(job.counter, job.c->CreateVariable({.name = "count", .dtype = kInt64}));
    MU_ASSIGN_OR_RETURN(job.step, job.c->DefineFunction("step", [&](FunctionBuilder& f) {
      const Sym id = f.NextBatch(job.data)["id"];
      AssignAdd(job.counter, 1);
      f.Return("loss", ReduceMean(Cast(id, kFloat32)));
    }));
    MU_ASSIGN_OR_RETURN(job.epoch, job.c->BatchesInEpoch(job.data));
    return job;
  }
  absl::StatusOr<TrainResult> TrainWith(
      const TrainOptions& options,
      const std::function<void(const TrainEvent&)>& on_event = nullptr) const {
    return Train(*c, step, data, options, on_event);
  }
  uint64_t Count() const {
    const auto value = c->Read(counter);
    MU_EXPECT_OK(value.status());
    return value.ok() ? static_cast<uint64_t>(*value->data<int64_t>()) : 0;
  }
  // With as many epochs as it has trained, and with one more.
  void ExpectThatOnlyMoreIsTrained(uint32_t epochs) const {
    EXPECT_EQ(Count(), epochs * epoch);
    EXPECT_THAT(TrainWith({.epochs = epochs}).status(),
                testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                  ::testing::HasSubstr(absl::StrCat(
                                      epochs * epoch, " steps of the data set 'own', ", epoch,
                                      " for each epoch, have been taken already"))));
    EXPECT_EQ(Count(), epochs * epoch);
    MU_ASSERT_OK(TrainWith({.epochs = epochs + 1}).status());
    EXPECT_EQ(Count(), (epochs + 1) * epoch);
  }
};

TEST(Conformance, PerWorkerDatasetIsTrainedOnlyOnce) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 1}));
  MU_ASSERT_OK_AND_ASSIGN(const CountedTraining job, CountedTraining::Create(*cluster));
  std::atomic<int> stop = 0;
  MU_ASSERT_OK_AND_ASSIGN(
      const TrainResult first,
      job.TrainWith({.epochs = 20, .steps_per_function = 3, .stop = &stop},
                    [&](const TrainEvent& event) { stop = event.steps > job.epoch ? 1 : 0; }));
  EXPECT_TRUE(first.stopped);
  ASSERT_LT(first.steps, 19 * job.epoch);
  MU_ASSERT_OK(job.TrainWith({.epochs = 20}).status());
  job.ExpectThatOnlyMoreIsTrained(20);
  MU_ASSERT_OK(job.c->StartEpoch(job.data, 0));
  MU_ASSERT_OK(job.TrainWith({.epochs = 1}).status());
  EXPECT_EQ(job.Count(), 22 * job.epoch) << "it begins again";
}

TEST(Conformance, PerWorkerDatasetIsEvaluatedWhereAnEpochEndedBefore) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 1}));
  MU_ASSERT_OK_AND_ASSIGN(const CountedTraining job, CountedTraining::Create(*cluster));
  MU_ASSERT_OK(job.TrainWith({.epochs = 1}).status());
  std::vector<std::pair<uint64_t, uint32_t>> evaluated;
  MU_ASSERT_OK(job.TrainWith({.epochs = 2,
                              .eval_every = {.epochs = 1},
                              .evaluate = [&](const EvaluationPoint& at) -> absl::StatusOr<bool> {
                                EXPECT_TRUE(at.epoch_ends);
                                evaluated.emplace_back(at.steps, at.epoch);
                                return true;
                              }})
                   .status());
  EXPECT_THAT(evaluated,
              ::testing::ElementsAre(std::pair(job.epoch, 1u), std::pair(2 * job.epoch, 2u)));
}

// Steps that the coordinator of before had trained, or scheduled, count.
TEST(Conformance, PerWorkerDatasetIsTrainedOnlyOnceAfterARestart) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 1}));
  const std::string checkpoints = cluster->directory() + "/checkpoints";
  {
    MU_ASSERT_OK_AND_ASSIGN(const CountedTraining job, CountedTraining::Create(*cluster));
    job.c->EnableRecovery(checkpoints);
    std::atomic<int> stop = 0;
    MU_ASSERT_OK(
        job.TrainWith({.epochs = 20, .steps_per_function = 3, .stop = &stop},
                      [&](const TrainEvent& event) { stop = event.steps > job.epoch ? 1 : 0; })
            .status());
    for (int i = 0; i < 20; ++i) job.c->Schedule(job.step, {.steps = 7});
    MU_ASSERT_OK(job.c->Checkpoint().status());  // with functions that have not finished
  }
  cluster->DestroyCoordinator();
  MU_ASSERT_OK(cluster->StartCoordinator());
  MU_ASSERT_OK_AND_ASSIGN(const CountedTraining job, CountedTraining::Create(*cluster));
  job.c->EnableRecovery(checkpoints);
  MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, job.c->Restore());
  MU_ASSERT_OK(job.TrainWith({.epochs = 20, .restored = &restored}).status());
  job.ExpectThatOnlyMoreIsTrained(20);
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
