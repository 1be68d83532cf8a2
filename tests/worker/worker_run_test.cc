#include "common/base/error_kind.h"
#include "tests/worker/test_functions.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;
using testing::ValueOf;

std::vector<std::string> Numbers(int count) {
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) lines.push_back(std::to_string(i));
  return lines;
}

// A worker that has the data 0..9 in batches of 4, and SumBatches.
class WorkerRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    AddCounters(&cluster_);
    MU_ASSERT_OK(cluster_.Configure());
    MU_ASSERT_OK(cluster_.InstallData(Numbers(10), 4));
    MU_ASSERT_OK(cluster_.InstallFunction(function_));
  }
  testing::WorkerCluster cluster_;
  const muster::FunctionProto function_ = testing::SumBatches();
};

TEST_F(WorkerRunTest, EveryStepReadsItsBatchAndItsResultArrives) {
  auto run = cluster_.Start(cluster_.MakeRun(1, function_, 3));
  MU_ASSERT_OK(run->Wait());
  const auto steps = run->steps();
  ASSERT_EQ(steps.size(), 3u);
  const float sums[] = {0 + 1 + 2 + 3, 4 + 5 + 6 + 7, 8 + 9};
  const uint32_t samples[] = {4, 4, 2};
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(steps[i].step(), i);
    EXPECT_EQ(steps[i].samples(), samples[i]);
    EXPECT_EQ(ValueOf<float>(steps[i], 0), sums[i]);
    EXPECT_EQ(ValueOf<int64_t>(steps[i], 1), i) << "a step sees the updates of those before it";
    EXPECT_FALSE(steps[i].repeated());
    EXPECT_EQ(steps[i].updates_size(), 1) << "one number for each server";
  }
  EXPECT_EQ(Steps(cluster_), 3);
  EXPECT_EQ(Total(cluster_), 45);
}

TEST_F(WorkerRunTest, AFunctionRunAgainChangesNothing) {
  const auto request = cluster_.MakeRun(1, function_, 3);
  auto first = cluster_.Start(request);
  MU_ASSERT_OK(first->Wait());
  auto again = cluster_.Start(request);
  MU_ASSERT_OK(again->Wait());
  ASSERT_EQ(again->steps().size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(again->steps()[i].repeated());
    EXPECT_EQ(ValueOf<float>(again->steps()[i], 0), ValueOf<float>(first->steps()[i], 0));
  }
  EXPECT_EQ(Steps(cluster_), 3);
  EXPECT_EQ(Total(cluster_), 45);
  MU_ASSERT_OK(cluster_.Start(cluster_.MakeRun(2, function_, 3))->Wait());
  EXPECT_EQ(Steps(cluster_), 6) << "another call of the function is another function id";
}

// The coordinator packs steps by that (StepPacer).
TEST_F(WorkerRunTest, ARunsFirstStepTellsTheTimeSinceTheRunBefore) {
  const auto gaps_of = [&](uint64_t function) {
    auto run = cluster_.Start(cluster_.MakeRun(function, function_, 3));
    MU_EXPECT_OK(run->Wait());
    std::vector<uint32_t> gaps;
    for (const auto& step : run->steps()) gaps.push_back(step.gap_us());
    return gaps;
  };
  EXPECT_THAT(gaps_of(1), ::testing::ElementsAre(0, 0, 0)) << "there was none before";
  EXPECT_THAT(gaps_of(2), ::testing::ElementsAre(::testing::Gt(0u), 0, 0));
}

TEST_F(WorkerRunTest, ResumesAtAStep) {
  auto request = cluster_.MakeRun(1, function_, 3);
  request.set_first_step(2);
  auto run = cluster_.Start(request);
  MU_ASSERT_OK(run->Wait());
  ASSERT_EQ(run->steps().size(), 1u);
  EXPECT_EQ(run->steps()[0].step(), 2u);
  EXPECT_EQ(ValueOf<float>(run->steps()[0], 0), 17);
  request.set_first_step(3);
  run = cluster_.Start(request);
  MU_ASSERT_OK(run->Wait());
  EXPECT_TRUE(run->steps().empty());
}

// Of the step's place in the job: however steps are packed, whoever runs them and however often.
TEST_F(WorkerRunTest, RandomNumbersAreThoseOfAStepsPlaceInTheJob) {
  testing::GraphMaker g;
  g.function().set_name("draw");
  g.function().set_dataset(0);
  const auto draw = g.Op("random_uniform", {g.Constant(Tensor(kFloat32, Shape()))},
                         {{"seed", testing::IntAttr(5)}, {"index", testing::IntAttr(0)}});
  g.Update("assign_add", "total", 1, muster::FLOAT32, Shape(), draw);
  g.Return("draw", draw);
  const muster::FunctionProto function = g.function();
  const auto draws = [&](testing::WorkerCluster& cluster, uint64_t id, uint64_t offset,
                         uint32_t first, uint32_t steps) {
    auto request = cluster.MakeRun(id, function, steps);
    request.set_step_offset(offset);
    request.set_first_step(first);
    auto run = cluster.Start(request);
    MU_EXPECT_OK(run->Wait());
    std::vector<float> values;
    for (const auto& step : run->steps()) values.push_back(ValueOf<float>(step, 0));
    return values;
  };
  MU_ASSERT_OK(cluster_.InstallFunction(function));
  const std::vector<float> once = draws(cluster_, 1, 40, 0, 3);
  ASSERT_EQ(once.size(), 3u);
  EXPECT_NE(once[0], once[1]);
  EXPECT_NE(once[1], once[2]);
  EXPECT_EQ(draws(cluster_, 1, 40, 1, 3), std::vector<float>({once[1], once[2]}));
  EXPECT_EQ(draws(cluster_, 2, 42, 0, 1), std::vector<float>({once[2]}));
  testing::WorkerCluster other;
  AddCounters(&other);
  MU_ASSERT_OK(other.Configure());
  MU_ASSERT_OK(other.InstallFunction(function));
  EXPECT_EQ(draws(other, 1, 40, 0, 3), once);
  // Where it is given, another place to draw by.
  auto request = cluster_.MakeRun(3, function, 2);
  request.set_step_offset(7);
  request.set_draw_offset(41);
  auto run = cluster_.Start(request);
  MU_ASSERT_OK(run->Wait());
  ASSERT_EQ(run->steps().size(), 2u);
  EXPECT_EQ(ValueOf<float>(run->steps()[0], 0), once[1]);
  EXPECT_EQ(ValueOf<float>(run->steps()[1], 0), once[2]);
}

TEST_F(WorkerRunTest, StepsBeyondTheDataDoNothing) {
  // Batches 3 and 4 of the lease have no records; the last step has no batch at all.
  auto request = cluster_.MakeRun(1, function_, 5);
  request.set_steps(6);
  auto run = cluster_.Start(request);
  MU_ASSERT_OK(run->Wait());
  ASSERT_EQ(run->steps().size(), 6u);
  for (int i = 3; i < 6; ++i) {
    EXPECT_EQ(run->steps()[i].samples(), 0u);
    EXPECT_EQ(run->steps()[i].returns_size(), 0);
  }
  EXPECT_EQ(Steps(cluster_), 3);
}

TEST_F(WorkerRunTest, RunsInFlightAreExecutedOneAfterTheOther) {
  const auto count = testing::CountSteps();
  MU_ASSERT_OK(cluster_.InstallFunction(count));
  std::vector<std::shared_ptr<testing::RunHandle>> runs;
  for (uint64_t id = 1; id <= 4; ++id)
    runs.push_back(cluster_.Start(cluster_.MakeRun(id, count, 3)));
  std::vector<int64_t> firsts;  // the transport may deliver them in any order
  for (auto& run : runs) {
    MU_ASSERT_OK(run->Wait());
    ASSERT_EQ(run->steps().size(), 3u);
    firsts.push_back(ValueOf<int64_t>(run->steps()[0], 0));
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(ValueOf<int64_t>(run->steps()[i], 0), firsts.back() + i);
  }
  EXPECT_THAT(firsts, ::testing::UnorderedElementsAre(0, 3, 6, 9));
}

TEST_F(WorkerRunTest, TheFunctionKnowsItsWorker) {
  const auto count = testing::CountSteps();
  MU_ASSERT_OK(cluster_.InstallFunction(count));
  MU_ASSERT_OK(cluster_.worker().Registered(7, 1, 5));
  auto run = cluster_.Start(cluster_.MakeRun(1, count, 1));
  MU_ASSERT_OK(run->Wait());
  EXPECT_EQ(ValueOf<int64_t>(run->steps()[0], 1), 5);
}

TEST_F(WorkerRunTest, ArgumentsReachTheFunction) {
  testing::GraphMaker g;
  g.function().set_dataset(0);
  g.Return("twice",
           g.Op("multiply", {g.Arg("x", muster::FLOAT32), g.Constant(Tensor::Scalar(2.0f))}));
  MU_ASSERT_OK(cluster_.InstallFunction(g.function()));
  auto request = cluster_.MakeRun(1, g.function(), 1);
  auto none = cluster_.Start(request);
  EXPECT_THAT(none->Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("takes 1 arguments, not 0")));
  *request.add_args() = Tensor::Scalar<int64_t>(3).ToProto();
  EXPECT_THAT(cluster_.Start(request)->Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'x'")));
  *request.mutable_args(0) = Tensor::Scalar(3.0f).ToProto();
  auto run = cluster_.Start(request);
  MU_ASSERT_OK(run->Wait());
  EXPECT_EQ(ValueOf<float>(run->steps()[0], 0), 6);
}

TEST_F(WorkerRunTest, ABadLineEndsTheFunctionWithItsPlace) {
  auto lines = Numbers(10);
  lines[6] = "seven";
  MU_ASSERT_OK(cluster_.InstallData(lines, 4));
  auto run = cluster_.Start(cluster_.MakeRun(1, function_, 3));
  const absl::Status status = run->Wait();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("data.csv:7")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sum_batches")));
  const auto detail = DetailOf(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->kind(), pb::ERROR_USER);
  EXPECT_EQ(detail->function(), "sum_batches");
  EXPECT_EQ(Steps(cluster_), 0);
}

TEST_F(WorkerRunTest, SkippedLinesAreCountedOnceWithTheFirstBatch) {
  auto lines = Numbers(10);
  lines[1] = "one";
  lines[9] = "nine";
  MU_ASSERT_OK(cluster_.InstallData(lines, 4, muster::ON_BAD_RECORD_SKIP));
  auto request = cluster_.MakeRun(1, function_, 3);
  auto run = cluster_.Start(request);
  MU_ASSERT_OK(run->Wait());
  EXPECT_EQ(run->steps()[0].bad_records(), 2u);
  EXPECT_THAT(run->steps()[0].bad_record_message(), HasSubstr("data.csv:2"));
  EXPECT_EQ(run->steps()[1].bad_records(), 0u);
  EXPECT_EQ(run->steps()[2].samples(), 0u) << "8 records are left, two batches";
  EXPECT_EQ(Total(cluster_), 45 - 1 - 9);
  // Another function that continues the lease does not count them again.
  request.set_function(2);
  request.set_steps(1);
  request.mutable_batches(0)->set_first_batch(1);
  auto next = cluster_.Start(request);
  MU_ASSERT_OK(next->Wait());
  EXPECT_EQ(next->steps()[0].bad_records(), 0u);
}

TEST_F(WorkerRunTest, SkippedLinesHaveTheirPlacesAndReasons) {
  auto lines = Numbers(10);
  lines[1] = "one";
  lines[2] = "two";
  lines[9] = "nine";
  MU_ASSERT_OK(cluster_.InstallData(lines, 4, muster::ON_BAD_RECORD_SKIP));
  auto run = cluster_.Start(cluster_.MakeRun(1, function_, 3));
  MU_ASSERT_OK(run->Wait());
  EXPECT_EQ(run->steps()[0].bad_records(), 3u);
  ASSERT_EQ(run->steps()[0].marked_records_size(), 3);
  const uint32_t before[] = {1, 1, 7};
  const char* const line[] = {"data.csv:2: ", "data.csv:3: ", "data.csv:10: "};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run->steps()[0].marked_records(i).before(), before[i]);
    EXPECT_THAT(run->steps()[0].marked_records(i).reason(), HasSubstr(line[i]));
  }
  EXPECT_EQ(run->steps()[1].marked_records_size(), 0);
}

TEST_F(WorkerRunTest, AMissingFileIsNamed) {
  std::filesystem::remove(cluster_.data_file());
  auto run = cluster_.Start(cluster_.MakeRun(1, function_, 3));
  EXPECT_THAT(run->Wait(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("data.csv")));
  EXPECT_EQ(KindOf(run->Wait()), pb::ERROR_MACHINE) << "another worker may see it";
  EXPECT_EQ(InputFaultOf(run->Wait()).kind(), pb::InputFault::MISSING);
}

TEST_F(WorkerRunTest, NaNNamesStepAndFunctionAndPushesNothing) {
  testing::GraphMaker g;
  g.function().set_name("logs");
  const auto x = g.Column("x", muster::FLOAT32, Shape({-1}));
  const auto shifted = g.Op("subtract", {x, g.Constant(Tensor::Scalar(4.0f))});
  g.Update("assign_add", "steps", 0, muster::INT64, Shape(), g.Constant(testing::One()));
  g.Return("log", g.Op("reduce_sum", {g.Op("log", {shifted})}));
  MU_ASSERT_OK(cluster_.InstallFunction(g.function()));
  auto run = cluster_.Start(cluster_.MakeRun(1, g.function(), 3));
  const absl::Status status = run->Wait();
  EXPECT_THAT(std::string(status.message()), HasSubstr("function 'logs', step 0"));
  EXPECT_EQ(KindOf(status), pb::ERROR_USER);
  EXPECT_EQ(Steps(cluster_), 0);
}

TEST_F(WorkerRunTest, FilesAreCounted) {
  muster::ScanFileRequest request;
  request.set_dataset(1);
  MU_ASSERT_OK_AND_ASSIGN(const auto reply,
                          cluster_.CallWorker<muster::ScanFileReply>("ScanFile", request));
  EXPECT_EQ(reply.layout().records(), 10u);
}

}  // namespace
}  // namespace mu
