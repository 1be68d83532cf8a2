// Synchronous rounds of training that stands still for evaluations, or is stopped and goes on, in
// the middle of a lease: the rounds are those of training that does neither, so they equal the
// large batch.
#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/steady_now.h"
#include "coordinator/training/checkpointer.h"
#include "coordinator/training/train_loop.h"
#include "tests/conformance/scoring_job.h"

namespace mu {
namespace {

using testing::ScoringJob;
using testing::TestCluster;

constexpr uint32_t kEpochs = 2;
constexpr uint64_t kSteps = kEpochs * ScoringJob::kRecords / ScoringJob::kBatch;
const RoundRules kRounds = {.replicas = ScoringJob::kReplicas};

class SyncRoundsStops : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(cluster_, TestCluster::Start({.workers = 3, .ps = 2}));
    Begin();
  }
  void Begin() {
    checkpointer_ = std::make_unique<Checkpointer>(
        &c(), CheckpointerOptions{.directory = cluster_->directory() + "/checkpoints",
                                  .every = absl::InfiniteDuration()});
    MU_ASSERT_OK_AND_ASSIGN(job_, ScoringJob::Create(*cluster_, ScoringJob::kBatch, kEpochs));
    MU_ASSERT_OK(c().SynchronousRounds(kRounds));
  }
  Coordinator& c() { return cluster_->coordinator(); }

  // Steps of the job after which a round ends.
  std::set<uint64_t> RoundEnds() {
    std::set<uint64_t> ends;
    uint64_t steps = 0;
    for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const auto leases = c().BatchesOfLeases(job_.data, epoch);
      MU_EXPECT_OK(leases.status());
      EXPECT_THAT(*leases, ::testing::SizeIs(ScoringJob::kLeases));
      for (uint32_t left : *leases) {
        while (left > 0) {
          const uint32_t round = std::min(left, kRounds.replicas);
          left -= round;
          ends.insert(steps += round);
        }
      }
    }
    EXPECT_EQ(steps, kSteps);
    return ends;
  }
  void ExpectTheLargeBatch() {
    MU_ASSERT_OK_AND_ASSIGN(const std::vector<float> values, job_.Values(c()));
    testing::ExpectNear(values, ScoringJob::LargeBatch(kEpochs), 1e-4f);
  }

  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<Checkpointer> checkpointer_;  // before the coordinator that it uses
  ScoringJob job_;
};

// What is due in the middle of a round is evaluated at its end.
TEST_F(SyncRoundsStops, EvaluationsBySteps) {
  constexpr uint64_t kEvery = 25;
  const std::set<uint64_t> ends = RoundEnds();
  std::vector<uint64_t> expected, evaluated;
  for (uint64_t due = kEvery; due <= kSteps; due += kEvery)
    expected.push_back(*ends.lower_bound(due));
  MU_ASSERT_OK(Train(c(), job_.step, job_.data,
                     {.epochs = kEpochs,
                      .eval_every = {.steps = kEvery},
                      .evaluate = [&](const EvaluationPoint& at) -> absl::StatusOr<bool> {
                        EXPECT_EQ(c().Counts().steps, at.steps);
                        evaluated.push_back(at.steps);
                        return true;
                      }})
                   .status());
  EXPECT_EQ(evaluated, expected);
  EXPECT_EQ(c().Stats().rounds.committed, ends.size());
  ExpectTheLargeBatch();
}

TEST_F(SyncRoundsStops, WhereMaxStepsEndIsEvaluated) {
  constexpr uint64_t kMost = 50;
  ASSERT_FALSE(RoundEnds().contains(kMost));
  std::vector<uint64_t> evaluated;
  MU_ASSERT_OK(Train(c(), job_.step, job_.data,
                     {.epochs = kEpochs,
                      .max_steps = kMost,
                      .eval_every = {.steps = kMost / 2},
                      .evaluate = [&](const EvaluationPoint& at) -> absl::StatusOr<bool> {
                        evaluated.push_back(at.steps);
                        return true;
                      }})
                   .status());
  EXPECT_THAT(evaluated, ::testing::ElementsAre(28, kMost));
  EXPECT_EQ(c().Stats().rounds.small, 1u);
}

TEST_F(SyncRoundsStops, EvaluationsByTime) {
  const std::set<uint64_t> ends = RoundEnds();
  std::vector<uint64_t> evaluated;
  MU_ASSERT_OK(Train(c(), job_.step, job_.data,
                     {.epochs = kEpochs,
                      .eval_every = {.time = absl::Milliseconds(1)},
                      .evaluate = [&](const EvaluationPoint& at) -> absl::StatusOr<bool> {
                        evaluated.push_back(at.steps);
                        return true;
                      }})
                   .status());
  EXPECT_THAT(evaluated, ::testing::SizeIs(::testing::Gt(10u)));
  for (const uint64_t steps : evaluated) EXPECT_TRUE(ends.contains(steps)) << steps;
  EXPECT_EQ(c().Stats().rounds.committed, ends.size());
  ExpectTheLargeBatch();
}

// `go_on` is asked between rounds only.
TEST_F(SyncRoundsStops, TrainingThatIsEndedAndGoesOn) {
  const std::set<uint64_t> ends = RoundEnds();
  int asked = 0;
  const TrainOptions options = {
      .epochs = kEpochs, .go_on = [&]() -> absl::StatusOr<bool> { return ++asked % 7 != 0; }};
  absl::StatusOr<TrainResult> result;
  int ended = 0;
  do {
    result = Train(c(), job_.step, job_.data, options);
    MU_ASSERT_OK(result.status());
    EXPECT_TRUE(ends.contains(result->end.steps)) << result->end.steps;
  } while (result->ended && result->end.steps < kSteps && ++ended < 100);
  EXPECT_GT(ended, 10);
  EXPECT_EQ(c().Stats().rounds.committed, ends.size());
  ExpectTheLargeBatch();
}

// A round is open and small when the job's coordinator ends: the next one schedules nothing more,
// and whoever waits for what was unfinished gets it.
class SyncRoundsOpenAtARestart : public SyncRoundsStops {
 protected:
  void SetUp() override {
    SyncRoundsStops::SetUp();
    ASSERT_EQ(RoundEnds().count(kMost - kLast), 1u);
    for (uint64_t i = 0; i < kMost; ++i) c().Schedule(job_.step);
    testing::WaitWhile([&] { return c().Counts().steps < kMost - kLast; });
    MU_ASSERT_OK(checkpointer_->TakeNow().status());
    EXPECT_EQ(c().Counts().steps, kMost - kLast) << "nobody has waited for the last round";
    checkpointer_.reset();
    cluster_->DestroyCoordinator();
    MU_ASSERT_OK(cluster_->StartCoordinator());
    Begin();
    MU_ASSERT_OK_AND_ASSIGN(restored_, c().Restore());
    ASSERT_THAT(restored_.unfinished, ::testing::SizeIs(kLast));
  }
  static constexpr uint64_t kLast = 2, kMost = kSteps - kLast;  // steps of the last round, of all
  RestoredJob restored_;
};

TEST_F(SyncRoundsOpenAtARestart, IsCommittedBeforeAnEvaluation) {
  const absl::Time end = SteadyNow() + testing::kPatience;
  std::vector<uint64_t> evaluated;
  MU_ASSERT_OK_AND_ASSIGN(
      const TrainResult result,
      Train(c(), job_.step, job_.data,
            {.epochs = kEpochs,
             .max_steps = kMost,
             .restored = &restored_,
             .eval_every = {.steps = kMost / 2},
             .evaluate = [&](const EvaluationPoint& at) -> absl::StatusOr<bool> {
               EXPECT_EQ(c().Counts().steps, at.steps);
               evaluated.push_back(at.steps);
               return true;
             },
             // Or it would wait for ever.
             .on_look =
                 [&] {
                   if (SteadyNow() > end) c().Cancel();
                 }}));
  EXPECT_THAT(evaluated, ::testing::ElementsAre(kMost));
  EXPECT_EQ(result.steps, kMost);
  EXPECT_EQ(c().Stats().rounds.small, 1u);
}

TEST_F(SyncRoundsOpenAtARestart, IsCommittedAtTheEndOfTraining) {
  const absl::Time end = SteadyNow() + testing::kPatience;
  const auto look = [&] {
    if (SteadyNow() > end) c().Cancel();
  };
  MU_ASSERT_OK_AND_ASSIGN(
      const TrainResult result,
      Train(c(), job_.step, job_.data,
            {.epochs = kEpochs, .max_steps = kMost, .restored = &restored_, .on_look = look}));
  EXPECT_EQ(result.steps, kMost);
  EXPECT_EQ(c().Stats().rounds.small, 1u);
}

TEST_F(SyncRoundsOpenAtARestart, IsCommittedWhenOneOfItsCallsIsFetched) {
  ASSERT_TRUE(restored_.unfinished[0].WaitFor(testing::kPatience));
  for (const RemoteValue& value : restored_.unfinished) MU_EXPECT_OK(value.Fetch().status());
  MU_ASSERT_OK(c().Join());
  EXPECT_EQ(c().Stats().rounds.small, 1u);
}

// Stopped again and again, as by Ctrl-C, while workers die; continued by the same program and by
// one that was started again.
TEST_F(SyncRoundsStops, TrainingThatIsStoppedAndContinued) {
  const std::set<uint64_t> ends = RoundEnds();
  std::atomic<int> stop = 0;
  TrainOptions options = {.epochs = kEpochs, .stop = &stop};
  uint64_t stop_at = 37, rounds = 0;
  int stops = 0;
  const auto on_event = [&](const TrainEvent& event) {
    if (event.steps < stop_at || stop > 0) return;
    stop = 1;
    const int killed = ++stops % 3;
    cluster_->KillWorker(killed);
    MU_EXPECT_OK(cluster_->StartWorker(killed));
  };
  absl::StatusOr<RestoredJob> restored;
  while (true) {
    const absl::StatusOr<TrainResult> result = Train(c(), job_.step, job_.data, options, on_event);
    MU_ASSERT_OK(result.status());
    ASSERT_TRUE(ends.contains(result->end.steps)) << result->end.steps;
    if (!result->stopped) break;
    stop = 0;
    stop_at = result->end.steps + 37;
    if (stops != 3) {
      options.restored = nullptr;
      continue;
    }
    MU_ASSERT_OK(checkpointer_->TakeNow().status());
    rounds = c().Stats().rounds.committed;
    checkpointer_.reset();
    cluster_->DestroyCoordinator();
    MU_ASSERT_OK(cluster_->StartCoordinator());
    Begin();
    restored = c().Restore();
    MU_ASSERT_OK(restored.status());
    options.restored = &*restored;
  }
  EXPECT_GE(stops, 5);
  EXPECT_EQ(rounds + c().Stats().rounds.committed, ends.size());
  ExpectTheLargeBatch();
}

}  // namespace
}  // namespace mu
