// The trainer's loop over epochs that differ in length: every record once, and as many steps as
// asked for.
#include "coordinator/training/trainer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "coordinator/training/evaluator.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

using testing::Numbers;
using testing::TestCluster;
using testing::WriteFile;

constexpr uint32_t kEpochs = 4;
constexpr int64_t kRecords = 700;

class TrainerTest : public ::testing::Test {
 protected:
  // Files of odd lengths: which of their blocks share a lease depends on the epoch's order, and so
  // does the number of short batches.
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(cluster_, TestCluster::Start({.workers = 2, .ps = 1}));
    std::vector<std::string> files;
    int64_t first = 0;
    for (const int64_t count : {100, 37, 260, 51, 252}) {
      files.push_back(absl::StrCat(cluster_->directory(), "/", first, ".csv"));
      WriteFile(files.back(), Numbers(first, count));
      first += count;
    }
    ASSERT_EQ(first, kRecords);
    files_ = files;
    Create();
    std::set<uint64_t> lengths;
    for (uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
      MU_ASSERT_OK_AND_ASSIGN(const uint64_t batches, c().BatchesInEpoch(data_, epoch));
      lengths.insert(batches);
      batches_.push_back(batches);
    }
    ASSERT_GT(lengths.size(), 1u) << "the epochs of this test should differ";
  }
  // What the coordinator of now needs.
  void Create() {
    MU_ASSERT_OK_AND_ASSIGN(
        data_,
        c().CreateDataset(
            Csv(files_).Id("id", 0, 0).Batch(7).BlockRecords(16).Shuffle(150).Epochs(kEpochs)));
    MU_ASSERT_OK_AND_ASSIGN(const Variable sum,
                            c().CreateVariable({.name = "sum", .dtype = kInt64}));
    MU_ASSERT_OK_AND_ASSIGN(step_, c().DefineFunction("step", [&](FunctionBuilder& f) {
      const Sym id = f.NextBatch(data_)["id"];
      AssignAdd(sum, ReduceSum(id));
      f.Return("loss", ReduceMean(Cast(id, kFloat32)));
    }));
    sum_ = sum;
  }
  Coordinator& c() { return cluster_->coordinator(); }
  int64_t Sum() {
    const auto value = c().Read(sum_);
    MU_EXPECT_OK(value.status());
    return value.ok() ? *value->data<int64_t>() : -1;
  }

  std::unique_ptr<TestCluster> cluster_;
  std::vector<std::string> files_;
  Dataset data_;
  Function step_;
  Variable sum_;
  std::vector<uint64_t> batches_;  // by epoch
};

TEST_F(TrainerTest, RefusesMoreEpochsThanTheDataHas) {
  const auto result = Train(c(), step_, data_, {.epochs = kEpochs + 1});
  EXPECT_THAT(result.status(),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("TrainOptions::epochs is 5")));
  EXPECT_EQ(Sum(), 0);
}

// Else as many steps of one data set would be trained as another one has.
TEST_F(TrainerTest, RefusesDataThatTheFunctionDoesNotRead) {
  MU_ASSERT_OK_AND_ASSIGN(
      const Dataset other,
      c().CreateDataset(Csv({files_[0]}).Id("id", 0, 0).Batch(7).Epochs(1).Name("other")));
  MU_ASSERT_OK_AND_ASSIGN(const Function none, c().DefineFunction("none", [](FunctionBuilder& f) {
    f.Return("loss", ReduceMean(ConstantTensor(Tensor::Of<float>({1}, {1}))));
  }));
  const auto expect = [&](const Function& function, const Dataset& data, const std::string& why) {
    const auto refused =
        testing::StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr(why));
    EXPECT_THAT(Train(c(), function, data, {}).status(), refused);
    EXPECT_THAT(
        ForEachPrediction(c(), function, data, {}, [](auto, auto) { return absl::OkStatus(); })
            .status(),
        refused);
  };
  expect(step_, other,
         absl::StrCat("function 'step' reads the data set '", data_.name(), "', not 'other'"));
  expect(none, other, "function 'none' reads no data set, and 'other' was given with it");
  expect(step_, Dataset(), "this Dataset handle is empty");
  expect(Function(), data_, "not defined by this coordinator");
  EXPECT_EQ(Sum(), 0);
}

TEST_F(TrainerTest, RefusesAGapThatIsNoShare) {
  for (const double gap : {0.0, -0.1, 1.1, std::nan("")}) {
    EXPECT_THAT(Train(c(), step_, data_, {.max_gap = gap}).status(),
                testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                  ::testing::HasSubstr("TrainOptions::max_gap is")));
  }
  EXPECT_EQ(Sum(), 0);
}

TEST_F(TrainerTest, RefusesALossThatTheFunctionDoesNotReturn) {
  EXPECT_THAT(Train(c(), step_, data_, {.loss = "cost"}).status(),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("'cost', which function 'step' does not")));
  EXPECT_EQ(Sum(), 0);
}

TEST_F(TrainerTest, RefusesTwoPeriodsOfEvaluations) {
  EXPECT_THAT(
      Train(c(), step_, data_, {.eval_every = {.epochs = 1, .time = absl::Seconds(1)}}).status(),
      testing::StatusIs(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("TrainOptions::eval_every must have one of")));
  EXPECT_EQ(Sum(), 0);
}

// No function has failed, so nothing else would end the others.
TEST_F(TrainerTest, ALossThatIsNoScalarEndsAllThatRuns) {
  MU_ASSERT_OK_AND_ASSIGN(const Function rows, c().DefineFunction("rows", [&](FunctionBuilder& f) {
    f.Return("loss", Cast(f.NextBatch(data_)["id"], kFloat32));
  }));
  EXPECT_THAT(Train(c(), rows, data_, {.steps_per_function = 1}).status(),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("Mean wants a float32 scalar")));
  EXPECT_EQ(c().Stats().unfinished, 0u);
  MU_EXPECT_OK(c().Join());
}

TEST_F(TrainerTest, EveryRecordOfEveryEpoch) {
  TrainEvent last;
  MU_ASSERT_OK_AND_ASSIGN(const TrainResult result,
                          Train(c(), step_, data_, {.epochs = kEpochs},
                                [&](const TrainEvent& event) { last = event; }));
  EXPECT_EQ(result.steps, std::accumulate(batches_.begin(), batches_.end(), uint64_t{0}));
  EXPECT_EQ(result.samples, uint64_t{kEpochs} * kRecords);
  EXPECT_EQ(Sum(), kEpochs * kRecords * (kRecords - 1) / 2);
  EXPECT_EQ(result.epochs_begun, kEpochs);
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(last.total_steps, result.steps);
}

// A batch of one record whose number is the loss, so that each step can be told from the others.
TEST_F(TrainerTest, EachStepIsToldWithItsOwnLoss) {
  constexpr uint64_t kSteps = 60;
  constexpr uint32_t kPacked = 4;
  WriteFile(cluster_->directory() + "/few.csv", Numbers(0, kSteps));
  MU_ASSERT_OK_AND_ASSIGN(
      const Dataset few,
      c().CreateDataset(
          Csv({cluster_->directory() + "/few.csv"}).Id("id", 0, 0).Batch(1).Name("few")));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c().DefineFunction("few", [&](FunctionBuilder& f) {
    f.Return("loss", ReduceMean(Cast(f.NextBatch(few)["id"], kFloat32)));
  }));
  std::vector<TrainEvent> events;
  MU_ASSERT_OK(Train(c(), step, few, {.steps_per_function = kPacked}, [&](const TrainEvent& event) {
                 events.push_back(event);
               }).status());
  ASSERT_EQ(events.size(), kSteps);
  std::vector<double> losses;
  for (size_t i = 0; i < kSteps; ++i) {
    EXPECT_EQ(events[i].steps, i + 1);
    EXPECT_EQ(events[i].samples, i + 1);
    losses.push_back(events[i].loss);
    // Whatever the order of functions, within one the steps are in theirs.
    const bool first = i % kPacked == 0, last = (i + 1) % kPacked == 0;
    if (!first) {
      EXPECT_EQ(events[i].loss, events[i - 1].loss + 1) << i;
    }
    EXPECT_EQ(events[i].function_loss.has_value(), last) << i;
    if (last) {
      EXPECT_EQ(events[i].function_loss, events[i].loss - (kPacked - 1) / 2.0) << i;
    }
  }
  std::sort(losses.begin(), losses.end());
  for (size_t i = 0; i < kSteps; ++i) EXPECT_EQ(losses[i], static_cast<double>(i));
}

// A lease has fewer batches than it was planned for where records are left out. So the mean comes
// with the last step that had records.
TEST_F(TrainerTest, AFunctionWhoseLastStepIsEmptyTellsItsMean) {
  const std::string file = cluster_->directory() + "/bad.csv";
  WriteFile(file, "1\n2\nnone\n6\n");
  MU_ASSERT_OK_AND_ASSIGN(
      const Dataset bad,
      c().CreateDataset(Csv({file}).Id("id", 0, 0).Batch(1).SkipBadRecords().Name("bad")));
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t planned, c().BatchesInEpoch(bad));
  ASSERT_EQ(planned, 4u) << "nobody has parsed the records yet";
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c().DefineFunction("bad", [&](FunctionBuilder& f) {
    f.Return("loss", ReduceMean(Cast(f.NextBatch(bad)["id"], kFloat32)));
  }));
  std::vector<TrainEvent> events;
  MU_ASSERT_OK_AND_ASSIGN(const TrainResult result,
                          Train(c(), step, bad, {.steps_per_function = 4},
                                [&](const TrainEvent& event) { events.push_back(event); }));
  EXPECT_EQ(result.functions, 1u);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_FALSE(events[0].function_loss.has_value());
  EXPECT_FALSE(events[1].function_loss.has_value());
  EXPECT_EQ(events[2].function_loss, 3.0);
}

TEST_F(TrainerTest, AsManyStepsAsAskedFor) {
  const uint64_t steps = batches_[0] + batches_[1] + 5;
  MU_ASSERT_OK_AND_ASSIGN(
      const TrainResult result,
      Train(c(), step_, data_, {.epochs = kEpochs, .steps_per_function = 4, .max_steps = steps}));
  EXPECT_EQ(result.steps, steps);
  EXPECT_EQ(result.epochs_begun, 3u);
  EXPECT_FALSE(result.stopped);
}

// 64 steps leave 4 at the end, and evaluations cut each function to 3: nobody chose that.
TEST_F(TrainerTest, TheStepsOfAFunctionAreToldAsTheyWereFixed) {
  const std::string file = cluster_->directory() + "/even.csv";
  WriteFile(file, Numbers(0, 64));
  for (const uint64_t eval_every : {uint64_t{0}, uint64_t{3}}) {
    MU_ASSERT_OK_AND_ASSIGN(
        const Dataset even,
        c().CreateDataset(
            Csv({file}).Id("id", 0, 0).Batch(1).Name(absl::StrCat("even", eval_every))));
    MU_ASSERT_OK_AND_ASSIGN(
        const Function step,
        c().DefineFunction(absl::StrCat("even", eval_every), [&](FunctionBuilder& f) {
          f.Return("loss", ReduceMean(Cast(f.NextBatch(even)["id"], kFloat32)));
        }));
    TrainOptions options = {.steps_per_function = 10};
    options.eval_every.steps = eval_every;
    if (eval_every > 0) {
      options.evaluate = [](const EvaluationPoint&) -> absl::StatusOr<bool> { return true; };
    }
    MU_ASSERT_OK_AND_ASSIGN(const TrainResult result, Train(c(), step, even, options));
    EXPECT_EQ(result.steps, 64u);
    EXPECT_EQ(result.steps_per_function, 10u) << eval_every;
  }
}

// Another coordinator goes on in the middle of the second epoch.
TEST_F(TrainerTest, AsManyStepsAsAskedForAfterARestart) {
  const std::string checkpoints = cluster_->directory() + "/checkpoints";
  const uint64_t steps = batches_[0] + batches_[1] + 5;
  std::atomic<int> stop = 0;
  TrainOptions options = {
      .epochs = kEpochs, .steps_per_function = 3, .max_steps = steps, .stop = &stop};
  uint64_t before = 0;
  {
    c().EnableRecovery(checkpoints);
    MU_ASSERT_OK_AND_ASSIGN(const TrainResult first,
                            Train(c(), step_, data_, options, [&](const TrainEvent& event) {
                              if (event.steps > batches_[0] + 20) stop = 1;
                            }));
    before = first.steps;
    ASSERT_GT(before, batches_[0] + 20);
    ASSERT_LT(before, batches_[0] + batches_[1]);
    MU_ASSERT_OK(c().Checkpoint());
  }
  cluster_->DestroyCoordinator();
  MU_ASSERT_OK(cluster_->StartCoordinator());
  Create();
  c().EnableRecovery(checkpoints);
  MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, c().Restore());
  EXPECT_EQ(restored.manifest.position().steps(), before);
  stop = 0;
  options.restored = &restored;
  MU_ASSERT_OK_AND_ASSIGN(const TrainResult rest, Train(c(), step_, data_, options));
  EXPECT_EQ(rest.steps, steps);
  EXPECT_EQ(c().Stats().steps, steps) << "of the whole job";
  EXPECT_EQ(rest.epochs_begun, 3u);
}

TEST_F(TrainerTest, StoppedAndWentOn) {
  std::atomic<int> stop = 0;
  MU_ASSERT_OK_AND_ASSIGN(
      const TrainResult first,
      Train(c(), step_, data_, {.epochs = kEpochs, .steps_per_function = 3, .stop = &stop},
            [&](const TrainEvent& event) {
              if (event.steps > batches_[0]) stop = 1;
            }));
  EXPECT_TRUE(first.stopped);
  // The coordinator knows what has been handed out: the same loop takes the rest.
  MU_ASSERT_OK_AND_ASSIGN(const TrainResult rest,
                          Train(c(), step_, data_, {.epochs = kEpochs, .steps_per_function = 3}));
  EXPECT_FALSE(rest.stopped);
  EXPECT_EQ(first.samples + rest.samples, uint64_t{kEpochs} * kRecords);
  EXPECT_EQ(Sum(), kEpochs * kRecords * (kRecords - 1) / 2);
}

// Where steps are packed, a stop that a callback asks for comes after those that are scheduled by
// then: docs/program.md.
TEST_F(TrainerTest, AStopOfACallbackEndsWithWhatWasScheduled) {
  const std::string file = cluster_->directory() + "/many.csv";
  WriteFile(file, Numbers(0, 60'000));
  MU_ASSERT_OK_AND_ASSIGN(const Dataset many,
                          c().CreateDataset(Csv({file}).Id("id", 0, 0).Batch(4).Name("many")));
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t batches, c().BatchesInEpoch(many));
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable counter,
      c().CreateVariable({.name = "counter", .dtype = kInt64, .trainable = false}));
  MU_ASSERT_OK_AND_ASSIGN(const Function count,
                          c().DefineFunction("count", [&](FunctionBuilder& f) {
                            AssignAdd(counter, 1);
                            f.Return("loss", ReduceMean(Cast(f.NextBatch(many)["id"], kFloat32)));
                          }));
  constexpr uint64_t kWorkers = 2;
  const auto most_under_way =
      2 * static_cast<uint64_t>(c().runtime().options().in_flight) * kWorkers;
  std::atomic<int> stop = 0;
  uint64_t asked = 0, scheduled = 0, told = 0, of_this = 0, longest = 0, functions_after = 0;
  MU_ASSERT_OK_AND_ASSIGN(const TrainResult result,
                          Train(c(), count, many, {.stop = &stop}, [&](const TrainEvent& event) {
                            told = event.steps;
                            longest = std::max(longest, ++of_this);
                            if (event.function_loss.has_value()) of_this = 0;
                            // The rest of the function that asks counts as one of these.
                            if (stop > 0 && event.function_loss.has_value()) ++functions_after;
                            if (stop > 0 || event.steps < 1000) return;
                            stop = 1;
                            asked = event.steps;
                            const absl::StatusOr<DataProgress> progress = c().ProgressOf(many);
                            MU_ASSERT_OK(progress);
                            scheduled = batches - progress->left;
                          }));
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(asked, 1000u);
  ASSERT_LT(scheduled, batches) << "there was nothing left to stop";
  EXPECT_GT(longest, 1u) << "nothing was packed";
  EXPECT_EQ(result.steps, scheduled) << "something was scheduled after the stop, or is missing";
  EXPECT_EQ(result.end.steps, scheduled);
  EXPECT_LE(functions_after, most_under_way);
  EXPECT_GE(result.steps, asked);
  EXPECT_LE(result.steps - asked, most_under_way * longest);
  // Of each step somebody was told, and each has been applied.
  EXPECT_EQ(told, result.steps);
  EXPECT_EQ(c().Stats().steps, result.steps);
  EXPECT_EQ(c().Stats().samples, result.samples);
  MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c().Read(counter));
  EXPECT_EQ(*counted.data<int64_t>(), static_cast<int64_t>(result.steps));
}

TEST_F(TrainerTest, AnEvaluationWantsAValueForEachRecord) {
  const auto evaluate = [&](const std::string& name, bool each) {
    const auto function = c().DefineFunction(name, [&](FunctionBuilder& f) {
      const Sym id = Cast(f.NextBatch(data_)["id"], kFloat32);
      f.Return("prediction", each ? id : ReduceMean(id));
    });
    MU_EXPECT_OK(function.status());
    return ForEachPrediction(c(), *function, data_, {.label = ""},
                             [](auto, auto) { return absl::OkStatus(); });
  };
  EXPECT_THAT(evaluate("one", false),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("must give one value for each")));
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t records, evaluate("each", true));
  EXPECT_EQ(records, static_cast<uint64_t>(kRecords));
}

// Another function fails meanwhile, and those of the evaluation are cancelled with it. What they
// end with says no more than that; the user has to know why.
TEST_F(TrainerTest, AnEvaluationTellsWhyItEnds) {
  const std::string file = cluster_->directory() + "/many.csv";
  WriteFile(file, Numbers(0, 60'000));
  MU_ASSERT_OK_AND_ASSIGN(const Dataset many,
                          c().CreateDataset(Csv({file}).Id("id", 0, 0).Batch(4)));
  MU_ASSERT_OK_AND_ASSIGN(const Function same, c().DefineFunction("same", [&](FunctionBuilder& f) {
    f.Return("prediction", Cast(f.NextBatch(many)["id"], kFloat32));
  }));
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable small,
                          c().CreateEmbeddingTable({.name = "small", .rows = 10, .dim = 1}));
  MU_ASSERT_OK_AND_ASSIGN(const Function bad, c().DefineFunction("bad", [&](FunctionBuilder& f) {
    f.Return("row", EmbeddingLookup(small, ConstantTensor(Tensor::Of<int64_t>(Shape({1}), {10}))));
  }));
  bool scheduled = false;
  const auto evaluated =
      ForEachPrediction(c(), same, many, {.label = "", .steps_per_function = 20}, [&](auto, auto) {
        if (!std::exchange(scheduled, true)) c().Schedule(bad);
        return absl::OkStatus();
      });
  EXPECT_THAT(evaluated, testing::StatusIs(absl::StatusCode::kOutOfRange,
                                           ::testing::HasSubstr("table 'small'")));
}

// More records than one lease holds, for two workers that do not advance evenly.
TEST_F(TrainerTest, PredictionsOfSeveralLeases) {
  constexpr int64_t kMany = 60'000;
  const std::string file = cluster_->directory() + "/many.csv";
  WriteFile(file, Numbers(0, kMany));
  MU_ASSERT_OK_AND_ASSIGN(const Dataset many,
                          c().CreateDataset(Csv({file}).Id("id", 0, 0).Batch(512)));
  MU_ASSERT_OK_AND_ASSIGN(const auto leases, c().BatchesByLease(many));
  ASSERT_GT(leases.size(), 2u);
  MU_ASSERT_OK_AND_ASSIGN(const Function same, c().DefineFunction("same", [&](FunctionBuilder& f) {
    f.Return("prediction", Cast(f.NextBatch(many)["id"], kFloat32));
  }));
  for (const bool in_order : {true, false}) {
    std::vector<float> seen;
    MU_ASSERT_OK_AND_ASSIGN(const uint64_t records,
                            ForEachPrediction(c(), same, many, {.label = "", .in_order = in_order},
                                              [&](absl::Span<const float> predictions, auto) {
                                                seen.insert(seen.end(), predictions.begin(),
                                                            predictions.end());
                                                return absl::OkStatus();
                                              }));
    EXPECT_EQ(records, static_cast<uint64_t>(kMany));
    if (!in_order) std::sort(seen.begin(), seen.end());
    std::vector<float> all(kMany);
    std::iota(all.begin(), all.end(), 0.0f);
    EXPECT_EQ(seen, all) << "each once, " << (in_order ? "in order" : "in any order");
  }
}

}  // namespace
}  // namespace mu
