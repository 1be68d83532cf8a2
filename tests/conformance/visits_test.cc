// How often each record is read in 20 epochs while processes are killed, in each mode of training:
// its updates are applied once per epoch, and the steps that the servers have seen are those of the
// epochs and the repeats that the report names (docs/report.md). What a loss has cut off is
// neither. It is counted after each loss, when all that was interrupted has run again.
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/training/checkpointer.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"
#include "tests/testing/push_log.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using testing::Eventually;
using ::testing::Ge;
using ::testing::Lt;
using testing::Numbers;
using testing::PushLog;
using testing::TestCluster;
using testing::TestClusterOptions;
using testing::WaitWhile;
using testing::WriteFile;

constexpr int64_t kRecords = 400, kBatch = 4;
constexpr uint32_t kEpochs = 20;
constexpr uint64_t kSteps = kEpochs * kRecords / kBatch;
constexpr int kServers = 2, kWorkers = 3, kPartitions = 12;
constexpr int kLosses = 8;
constexpr uint64_t kInFlight = 2;  // functions of a worker, whose results may all be untold

struct Mode {
  const char* name;
  uint32_t steps_of_a_function = 10;
  std::optional<Staleness> staleness = std::nullopt;
  std::optional<uint64_t> most_ahead = std::nullopt;
  RoundRules rounds = {};
  bool coordinator_dies = false;
  bool discounts() const {
    return staleness.has_value() && staleness->discount != StalenessDiscount::kNone;
  }
};

class EachRecordIsVisited : public ::testing::TestWithParam<Mode> {
 protected:
  void Start() {
    TestClusterOptions options;
    options.workers = kWorkers;
    options.ps = kServers;
    options.adjust = [this](const std::string& role, int index, SubprocessOptions* daemon) {
      if (role != "psserver") return;
      daemon->path = MUSTER_LOGGING_PSSERVER;
      daemon->environment.push_back(absl::StrCat(testing::kPushLogVariable, "=", LogOf(index)));
    };
    MU_ASSERT_OK_AND_ASSIGN(TempDirectory logs, TempDirectory::Create("muster-pushes"));
    logs_.emplace(std::move(logs));
    MU_ASSERT_OK_AND_ASSIGN(cluster_, TestCluster::Start(options));
    WriteFile(File(), Numbers(0, kRecords));
    Prepare();
  }

  // What every coordinator of the job does first.
  void Prepare() {
    MU_ASSERT_OK(c().SynchronousRounds(GetParam().rounds));
    checkpointer_.emplace(&c(),
                          CheckpointerOptions{.directory = cluster_->directory() + "/checkpoints",
                                              .every = absl::InfiniteDuration()});
    c().BoundStaleness(GetParam().most_ahead);
    Define();
  }

  // Each record takes 1 from its row, as a gradient; each step adds 1 to a counter on every server.
  void Define() {
    MU_ASSERT_OK_AND_ASSIGN(
        const Dataset data,
        c().CreateDataset(Csv({File()}).Id("id", 0, 0).Batch(kBatch).Shuffle(100).Epochs(kEpochs)));
    MU_ASSERT_OK_AND_ASSIGN(counters_,
                            c().CreateVariable({.name = "counters",
                                                .shape = Shape({kPartitions}),
                                                .dtype = kInt64,
                                                .partitioner = FixedShards{kPartitions}}));
    MU_ASSERT_OK_AND_ASSIGN(visits_,
                            c().CreateEmbeddingTable({.name = "visits",
                                                      .rows = kRecords,
                                                      .dim = 1,
                                                      .initializer = Constant{0},
                                                      .optimizer = Sgd{.learning_rate = 1}}));
    const Tensor ones =
        Tensor::Of<int64_t>(Shape({kPartitions}), std::vector<int64_t>(kPartitions, 1));
    MinimizeOptions options;
    options.staleness = GetParam().staleness;
    MU_ASSERT_OK_AND_ASSIGN(step_, c().DefineFunction("visit", [&](FunctionBuilder& f) {
      const Sym rows = EmbeddingLookup(visits_, f.NextBatch(data)["id"]);
      AssignAdd(counters_, ConstantTensor(ones));
      f.Minimize(ReduceSum(rows), options);
    }));
  }

  uint64_t Steps() { return c().Stats().steps; }
  // No more than that: a quick machine would be done with the job before the last loss.
  void ScheduleUntil(uint64_t steps) {
    const uint32_t each = GetParam().steps_of_a_function;
    for (; scheduled_ < steps; scheduled_ += each) c().Schedule(step_, {.steps = each});
  }
  void WaitForSteps(uint64_t steps) {
    WaitWhile([&] { return Steps() < steps; });
  }

  void LoseAWorker(int worker) {
    // A coordinator that has just begun may not know it yet: it would count no loss.
    WaitWhile([&] { return c().Stats().workers_ready < size_t{kWorkers}; });
    const uint64_t lost = Lost(pb::ROLE_WORKER);
    cluster_->KillWorker(worker);
    MU_ASSERT_OK(cluster_->StartWorker(worker));
    WaitWhile([&] { return Lost(pb::ROLE_WORKER) == lost; });
    WaitWhile([&] { return c().Stats().workers_ready < size_t{kWorkers}; });
    // It had not told of the step that it ran. What it had told of or held back is on the servers,
    // which say so when it comes again: the report names that.
    ExpectUntold(/*least=*/0, /*most=*/1);
  }
  // After a checkpoint and some steps that it lacks.
  void LoseAServer(int index) {
    MU_ASSERT_OK(c().Checkpoint());
    const uint64_t covered = Steps(), lost = Lost(pb::ROLE_PSSERVER);
    ScheduleUntil(covered + 220);
    WaitForSteps(covered + 150);
    cluster_->KillServer(index);
    // From then on no result counts until the place is taken again.
    WaitWhile([&] { return Lost(pb::ROLE_PSSERVER) == lost; });
    const uint64_t told = Steps() - continued_from_, repeated = RepeatedSteps();
    const uint64_t generation = ServersGeneration();
    MU_ASSERT_OK(cluster_->StartServer(index));
    MU_ASSERT_OK(c().Join());
    EXPECT_GE(RepeatedSteps() - repeated, 150u) << "the servers did not go back";
    // What had run to its end and had no result: of the round that was open, or of what each worker
    // had.
    const uint64_t ended = PushLog(LogPaths(), first_generation_, generation).DifferentSteps();
    ASSERT_GE(ended, told);
    const uint64_t under_way = GetParam().rounds.on()
                                   ? GetParam().rounds.most()
                                   : kWorkers * kInFlight * GetParam().steps_of_a_function;
    EXPECT_LE(ended - told, under_way);
    ExpectUntold(ended - told, ended - told);
  }
  // After a checkpoint and some steps that it lacks. The next one continues.
  void LoseTheCoordinator() {
    MU_ASSERT_OK(c().Checkpoint());
    const uint64_t covered = Steps(), scheduled = scheduled_;
    ScheduleUntil(covered + 220);
    WaitForSteps(covered + 150);
    const RuntimeStats stats = c().Stats();
    const uint64_t told = stats.steps, last_generation = ServersGeneration();
    // With backups, attempts that were too late for their rounds, and for those that are committed
    // until it dies.
    const uint64_t backups = GetParam().rounds.backups;
    const uint64_t late = backups > 0 ? stats.rounds.late + backups * (scheduled_ - told) : 0;
    checkpointer_.reset();
    cluster_->DestroyCoordinator();
    MU_ASSERT_OK(cluster_->StartCoordinator());
    ASSERT_NO_FATAL_FAILURE(Prepare());
    MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, c().Restore());
    // The servers refuse what still comes for the one that died. No step had run for it twice since
    // all was counted, unless it was late.
    const PushLog log(LogPaths(), first_generation_, last_generation);
    EXPECT_GE(log.Complete() - counted_runs_, told - counted_steps_);
    EXPECT_LE(log.Complete() - counted_runs_, scheduled_ - counted_steps_ + late);
    first_generation_ = last_generation + 1;
    continued_from_ = restored.manifest.position().steps();
    ASSERT_LE(continued_from_, covered);
    scheduled_ = scheduled;  // what the checkpoint lacks is scheduled anew
    untold_ = 0;
    // No report has what the one that died had done since the checkpoint: it is none of the next
    // one's repeats.
    ExpectUntold(/*least=*/0, /*most=*/0);
  }

  // Steps that ran under this coordinator, as the report says.
  uint64_t NamedSteps() { return Steps() - continued_from_ + RepeatedSteps(); }
  uint64_t RepeatedSteps() {
    const RuntimeStats stats = c().Stats();
    uint64_t repeated = stats.backup_runs.steps_repeated + stats.unlisted_failures.steps_repeated;
    for (const MemberFailure& failure : stats.failures) repeated += failure.steps_repeated;
    return repeated;
  }
  uint64_t RepeatedSamples() {
    const RuntimeStats stats = c().Stats();
    uint64_t repeated =
        stats.backup_runs.samples_repeated + stats.unlisted_failures.samples_repeated;
    for (const MemberFailure& failure : stats.failures) repeated += failure.samples_repeated;
    return repeated;
  }
  uint64_t Lost(pb::Role role) {
    uint64_t lost = 0;
    for (const MemberFailure& failure : c().Stats().failures) lost += failure.role == role ? 1 : 0;
    return lost;
  }
  uint64_t ServersGeneration() { return c().runtime().Context().generation(); }

  // Joins. Of the runs of steps that have come to their end since the last time, the report does
  // not name `least` to `most`.
  void ExpectUntold(uint64_t least, uint64_t most) {
    MU_ASSERT_OK(c().Join());
    EXPECT_EQ(Steps(), scheduled_);
    EXPECT_EQ(RepeatedSamples(), kBatch * RepeatedSteps());
    // With backups an attempt that was too late for its round may have run to its end or not, and
    // that may be known later.
    const bool backups = GetParam().rounds.backups > 0;
    const uint64_t named = NamedSteps();
    const uint64_t at_least = named + (backups ? 0 : untold_ + least);
    // A server may write of a run's push after it has answered the repeat's.
    EXPECT_TRUE(Eventually([&] { return Log().Complete() >= at_least; }))
        << "the report names steps that nobody ran";
    const uint64_t runs = Log().Complete();
    EXPECT_LE(runs, named + untold_ + most + c().Stats().rounds.late)
        << "the report lacks repeats: it names " << named;
    untold_ = backups ? untold_ + most : runs - named;
    counted_runs_ = runs;
    counted_steps_ = scheduled_;
  }

  void ExpectAppliedOnce() {
    MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c().Read(counters_));
    EXPECT_THAT(counted.flat<int64_t>(), Each(static_cast<int64_t>(kSteps)));
    std::vector<int64_t> ids(kRecords);
    std::iota(ids.begin(), ids.end(), 0);
    MU_ASSERT_OK_AND_ASSIGN(const Tensor visited, c().ReadRows(visits_, ids));
    const float all = -static_cast<float>(kEpochs);
    if (!GetParam().discounts()) {
      EXPECT_THAT(visited.flat<float>(), Each(all));
      return;
    }
    // A late visit takes less than 1.
    const auto values = visited.flat<float>();
    EXPECT_THAT(values, Each(AllOf(Ge(all), Lt(0.0f))));
    EXPECT_GT(std::accumulate(values.begin(), values.end(), 0.0), double{all} * kRecords)
        << "three workers at once are late by two now and then";
  }

  // Each run of a step that came to its end has read the batch of the step.
  void ExpectVisits() {
    const PushLog log = Log();
    std::map<int64_t, uint64_t> visits = log.Visits();
    uint64_t runs = log.Complete();
    if (first_generation_ > 0) {
      // Functions that its checkpoint lacked were others, with other batches.
      const PushLog earlier(LogPaths(), 0, first_generation_ - 1);
      for (const auto& [record, times] : earlier.Visits()) visits[record] += times;
      runs += earlier.Complete();
    }
    uint64_t sum = 0;
    for (const auto& [record, times] : visits) {
      EXPECT_GE(times, kEpochs) << "record " << record;
      sum += times;
    }
    EXPECT_EQ(visits.size(), static_cast<size_t>(kRecords));
    EXPECT_EQ(sum, kBatch * runs) << "a repeat has read another batch";
    if (first_generation_ > 0) return;
    for (const auto& [record, steps] : log.Steps())
      EXPECT_EQ(steps, kEpochs) << "record " << record << ": a repeat has read another batch";
  }

  Coordinator& c() { return cluster_->coordinator(); }
  std::string File() const { return cluster_->directory() + "/numbers.csv"; }
  std::string LogOf(int server) const { return absl::StrCat(logs_->path(), "/pushes-", server); }
  std::vector<std::string> LogPaths() const { return {LogOf(0), LogOf(1)}; }
  // Of the present coordinator.
  PushLog Log() const { return PushLog(LogPaths(), first_generation_); }

  std::optional<TempDirectory> logs_;
  std::unique_ptr<TestCluster> cluster_;
  std::optional<Checkpointer> checkpointer_;
  Variable counters_;
  EmbeddingTable visits_;
  Function step_;
  uint64_t scheduled_ = 0;
  // Where the present coordinator began.
  uint64_t first_generation_ = 0, continued_from_ = 0;
  // As of the last ExpectUntold: runs of steps under this coordinator, those of them that its
  // report does not name, and the job's steps.
  uint64_t counted_runs_ = 0, untold_ = 0, counted_steps_ = 0;
};

TEST_P(EachRecordIsVisited, OncePerEpochAndOnceForEachRepeatOfTheReport) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (int loss = 0; loss < kLosses; ++loss) {
    SCOPED_TRACE(absl::StrCat("loss ", loss));
    const uint64_t before = Steps();
    ScheduleUntil(before + 160);
    WaitForSteps(before + 80);
    if (loss == kLosses / 2 && GetParam().coordinator_dies) {
      ASSERT_NO_FATAL_FAILURE(LoseTheCoordinator());
    } else if (loss % 4 == 2) {
      ASSERT_NO_FATAL_FAILURE(LoseAServer(loss / 4 % kServers));
    } else {
      ASSERT_NO_FATAL_FAILURE(LoseAWorker(loss % kWorkers));
    }
  }
  ASSERT_LT(scheduled_, kSteps) << "the job is too short for so many losses";
  ScheduleUntil(kSteps);
  ASSERT_NO_FATAL_FAILURE(ExpectUntold(/*least=*/0, /*most=*/0));
  ExpectAppliedOnce();
  ExpectVisits();
  const RuntimeStats stats = c().Stats();
  EXPECT_EQ(stats.steps, kSteps);
  EXPECT_EQ(stats.samples, kEpochs * static_cast<uint64_t>(kRecords));
  EXPECT_LE(stats.staleness.refused, Log().too_late());
  if (GetParam().discounts()) {
    EXPECT_GT(stats.staleness.max, 1u);
    EXPECT_EQ(stats.staleness.refused, 0u) << "without a bound nothing is too late";
  } else if (GetParam().staleness.has_value()) {
    EXPECT_GT(stats.staleness.refused, 0u) << "three workers at once are late by two now and then";
  }
  if (GetParam().most_ahead.has_value()) {
    EXPECT_GT(stats.waited_for_steps, 0u);
  }
  if (GetParam().rounds.on()) {
    // A round that was rolled back is committed again.
    EXPECT_GT(stats.rounds.contributions, kSteps - continued_from_);
    EXPECT_LE(stats.rounds.contributions, NamedSteps());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, EachRecordIsVisited,
    ::testing::Values(
        Mode{.name = "Async"}, Mode{.name = "AsyncCoordinatorDies", .coordinator_dies = true},
        Mode{.name = "LateRefused", .staleness = Staleness{.max = 1}},
        Mode{.name = "LateRefusedCoordinatorDies",
             .staleness = Staleness{.max = 1},
             .coordinator_dies = true},
        Mode{.name = "LateDiscounted",
             .staleness = Staleness{.discount = StalenessDiscount::kInverse}},
        Mode{.name = "LateDiscountedCoordinatorDies",
             .staleness = Staleness{.discount = StalenessDiscount::kInverse},
             .coordinator_dies = true},
        Mode{.name = "BoundedStaleness", .most_ahead = 25},
        Mode{.name = "BoundedStalenessCoordinatorDies", .most_ahead = 25, .coordinator_dies = true},
        Mode{.name = "Sync", .steps_of_a_function = 1, .rounds = {.replicas = 2, .sum_rows = true}},
        Mode{.name = "SyncCoordinatorDies",
             .steps_of_a_function = 1,
             .rounds = {.replicas = 2, .sum_rows = true},
             .coordinator_dies = true},
        Mode{.name = "SyncWithBackups",
             .steps_of_a_function = 1,
             .rounds = {.replicas = 2, .backups = 1, .sum_rows = true}},
        Mode{.name = "SyncWithBackupsCoordinatorDies",
             .steps_of_a_function = 1,
             .rounds = {.replicas = 2, .backups = 1, .sum_rows = true},
             .coordinator_dies = true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mu
