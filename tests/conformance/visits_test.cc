// How often each record is read in 20 epochs while processes are killed, in each mode of training:
// its updates are applied once per epoch, and the steps that the servers have seen are those of the
// epochs and the repeats that the report names (docs/report.md).
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

// What the coordinators before this one knew when they died; no report has it (docs/report.md).
struct Earlier {
  uint64_t named_steps = 0;   // beyond the checkpoint that the next one began with
  uint64_t untold_steps = 0;  // at most: what was scheduled and had no result
  uint64_t repeated_steps = 0, lost_workers = 0;
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
    cluster_->KillWorker(worker);
    MU_ASSERT_OK(cluster_->StartWorker(worker));
  }
  // After a checkpoint and some steps that it lacks.
  void LoseAServer(int index) {
    MU_ASSERT_OK(c().Checkpoint());
    const uint64_t covered = Steps();
    ScheduleUntil(covered + 220);
    WaitForSteps(covered + 150);
    cluster_->KillServer(index);
    MU_ASSERT_OK(cluster_->StartServer(index));
    ++lost_servers_;
  }
  // After a checkpoint and some steps that it lacks. The next one continues.
  void LoseTheCoordinator() {
    MU_ASSERT_OK(c().Checkpoint());
    const uint64_t covered = Steps(), scheduled = scheduled_;
    ScheduleUntil(covered + 220);
    WaitForSteps(covered + 150);
    earlier_.untold_steps = scheduled_ - Steps();
    earlier_.named_steps = NamedSteps();
    earlier_.repeated_steps = RepeatedSteps();
    earlier_.lost_workers = LostWorkers();
    checkpointer_.reset();
    cluster_->DestroyCoordinator();
    MU_ASSERT_OK(cluster_->StartCoordinator());
    ASSERT_NO_FATAL_FAILURE(Prepare());
    MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, c().Restore());
    const uint64_t position = restored.manifest.position().steps();
    ASSERT_LE(position, covered);
    earlier_.named_steps -= position;
    scheduled_ = scheduled;  // what the checkpoint lacks is scheduled anew
  }

  // Steps that ran, as the report says.
  uint64_t NamedSteps() { return c().Stats().steps + RepeatedSteps(); }
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
  uint64_t LostWorkers() {
    uint64_t lost = 0;
    for (const MemberFailure& failure : c().Stats().failures)
      lost += failure.role == pb::ROLE_WORKER ? 1 : 0;
    return lost;
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

  void ExpectEveryRepeatIsNamed() {
    const PushLog log = Log();
    const RuntimeStats stats = c().Stats();
    EXPECT_EQ(stats.steps, kSteps);
    EXPECT_EQ(stats.samples, kEpochs * static_cast<uint64_t>(kRecords));
    EXPECT_EQ(RepeatedSamples(), kBatch * RepeatedSteps());
    EXPECT_GE(RepeatedSteps() + earlier_.repeated_steps, 150 * lost_servers_)
        << "no server went back";
    // What a loss has cut off: the step that a worker ran; where the servers go back, the steps of
    // the round that was open, or what each worker had not told of yet. Else what runs again has
    // had its result, or is found to be applied. An attempt that is too late for its round may have
    // run to its end or not.
    const uint64_t under_way = GetParam().rounds.on()
                                   ? GetParam().rounds.most()
                                   : kWorkers * kInFlight * GetParam().steps_of_a_function;
    // So does the loss of a coordinator what had no result yet.
    const uint64_t cut_off =
        LostWorkers() + earlier_.lost_workers + lost_servers_ * under_way + earlier_.untold_steps;
    const uint64_t most = stats.rounds.late + cut_off;
    const uint64_t named = NamedSteps() + earlier_.named_steps;
    EXPECT_GE(log.Complete(), named) << "the report names steps that nobody ran";
    EXPECT_LE(log.Complete(), named + most) << "the report lacks repeats";
    EXPECT_LE(stats.staleness.refused, log.too_late());

    uint64_t sum = 0;
    std::vector<uint64_t> each;
    for (const auto& [record, visits] : log.Visits()) {
      each.push_back(visits);
      sum += visits;
    }
    EXPECT_EQ(each.size(), static_cast<size_t>(kRecords));
    EXPECT_THAT(each, Each(Ge(uint64_t{kEpochs})));
    // Functions that its checkpoint lacks are others, with other batches, after a coordinator's
    // death.
    if (GetParam().coordinator_dies) return;
    EXPECT_GE(sum, stats.samples + RepeatedSamples());
    EXPECT_LE(sum, stats.samples + RepeatedSamples() + kBatch * most);
    for (const auto& [record, steps] : log.Steps())
      EXPECT_EQ(steps, kEpochs) << "record " << record << ": a repeat has read another batch";
  }

  Coordinator& c() { return cluster_->coordinator(); }
  std::string File() const { return cluster_->directory() + "/numbers.csv"; }
  std::string LogOf(int server) const { return absl::StrCat(logs_->path(), "/pushes-", server); }
  PushLog Log() const { return PushLog({LogOf(0), LogOf(1)}); }

  std::optional<TempDirectory> logs_;
  std::unique_ptr<TestCluster> cluster_;
  std::optional<Checkpointer> checkpointer_;
  Variable counters_;
  EmbeddingTable visits_;
  Function step_;
  uint64_t scheduled_ = 0, lost_servers_ = 0;
  Earlier earlier_;
};

TEST_P(EachRecordIsVisited, OncePerEpochAndOnceForEachRepeatOfTheReport) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (int loss = 0; loss < kLosses; ++loss) {
    const uint64_t before = Steps();
    ScheduleUntil(before + 160);
    // What the loss before this one has cut off has run again by then.
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
  MU_ASSERT_OK(c().Join());
  ExpectAppliedOnce();
  ExpectEveryRepeatIsNamed();
  const RuntimeStats stats = c().Stats();
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
    EXPECT_GT(stats.rounds.contributions, kSteps);
    EXPECT_LE(stats.rounds.contributions, NamedSteps());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, EachRecordIsVisited,
    ::testing::Values(
        Mode{.name = "Async"}, Mode{.name = "AsyncCoordinatorDies", .coordinator_dies = true},
        Mode{.name = "LateRefused", .staleness = Staleness{.max = 1}},
        Mode{.name = "LateDiscounted",
             .staleness = Staleness{.discount = StalenessDiscount::kInverse}},
        Mode{.name = "BoundedStaleness", .most_ahead = 25},
        Mode{.name = "Sync", .steps_of_a_function = 1, .rounds = {.replicas = 2, .sum_rows = true}},
        Mode{.name = "SyncWithBackups",
             .steps_of_a_function = 1,
             .rounds = {.replicas = 2, .backups = 1, .sum_rows = true}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mu
