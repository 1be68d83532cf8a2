#include "coordinator/training/prediction_file.h"

#include <cmath>
#include <limits>

#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

Tensor Floats(Shape shape, const std::vector<float>& values) {
  return Tensor::Of<float>(std::move(shape), values);
}

EvaluatedBatch Of(uint32_t records, absl::Span<const Tensor> values,
                  absl::Span<const MarkedRecord> marked = {}) {
  return {records, values, marked};
}

ForwardTask TaskCalled(const std::string& name, Task task) {
  return {name, task, "prediction", ""};
}

TEST(PredictionFile, ALineForEachRecord) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory dir, TempDirectory::Create("predictions_"));
  const std::string path = dir.path() + "/out.csv";
  PredictionFile file(path, {.tasks = {TaskCalled("", Task::kRegression)}}, false);
  MU_ASSERT_OK(file.Open());
  MU_ASSERT_OK(file.Add(Of(2, {Floats({2}, {0.1f, -3})})));
  MU_ASSERT_OK(file.Add(Of(0, {})));
  MU_ASSERT_OK(file.Add(Of(2, {Floats({2, 1}, {NAN, std::numeric_limits<float>::infinity()})})));
  EXPECT_FALSE(FileExists(path)) << "it is not complete yet";
  MU_ASSERT_OK(file.Close());
  EXPECT_EQ(*ReadFile(path), "prediction\n0.1\n-3\nnan\ninf\n");
  EXPECT_EQ(file.written(), 4u);
  EXPECT_EQ(file.not_finite(), 2u);
  EXPECT_EQ(file.first_not_finite(), 3u);
  EXPECT_FALSE(FileExists(path + ".part"));
}

TEST(PredictionFile, ClassesAndSeveralTasks) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory dir, TempDirectory::Create("predictions_"));
  const std::string path = dir.path() + "/out.csv";
  PredictionFile file(path,
                      {.tasks = {TaskCalled("click", Task::kBinaryClassification),
                                 TaskCalled("kind", Task::kMultiClass)}},
                      false);
  MU_ASSERT_OK(file.Open());
  MU_ASSERT_OK(file.Add(
      Of(2, {Floats({2}, {0.5f, 0.25f}), Floats({2, 3}, {0.2f, 0.3f, 0.5f, 0.4f, 0.4f, 0.2f})})));
  MU_ASSERT_OK(file.Close());
  EXPECT_EQ(*ReadFile(path), "click,kind_class,kind_probability\n0.5,2,0.5\n0.25,0,0.4\n");
}

TEST(PredictionFile, RecordsThatWereLeftOutHaveTheirLines) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory dir, TempDirectory::Create("predictions_"));
  const std::string path = dir.path() + "/out.csv";
  PredictionFile file(path,
                      {.tasks = {TaskCalled("", Task::kRegression)},
                       .columns = {{"user", "column.user"}, {"age", "column.age"}}},
                      true);
  EXPECT_EQ(file.returns(), (std::vector<std::string>{"column.user", "column.age", "prediction"}));
  MU_ASSERT_OK(file.Open());
  const std::vector<int64_t> users = {-7, 1L << 40};
  MU_ASSERT_OK(file.Add(
      Of(2, {Tensor::Of<int64_t>({2}, users), Floats({2}, {30, 1e-8f}), Floats({2}, {0.5f, 2})},
         {{0, "a.csv:1: bad"},
          {1, "a.csv:3: \"x\" is no number"},
          {1, "a.csv:4: bad"},
          {2, "a.csv:6: bad"}})));
  MU_ASSERT_OK(file.Add(Of(0, {}, {{0, "a.csv:7: bad"}})));
  MU_ASSERT_OK(file.Close());
  EXPECT_EQ(*ReadFile(path),
            "user,age,prediction,skipped\n"
            ",,,\"a.csv:1: bad\"\n"
            "-7,30,0.5,\n"
            ",,,\"a.csv:3: \"\"x\"\" is no number\"\n"
            ",,,\"a.csv:4: bad\"\n"
            "1099511627776,1e-08,2,\n"
            ",,,\"a.csv:6: bad\"\n"
            ",,,\"a.csv:7: bad\"\n");
  EXPECT_EQ(file.written(), 7u);
  EXPECT_EQ(file.skipped(), 5u);
}

TEST(PredictionFile, LeavesNothingBehindWhenItIsNotClosed) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory dir, TempDirectory::Create("predictions_"));
  const std::string path = dir.path() + "/out.csv";
  {
    PredictionFile file(path, {.tasks = {TaskCalled("", Task::kMultiClass)}}, false);
    MU_ASSERT_OK(file.Open());
    EXPECT_THAT(file.Add(Of(2, {Floats({2}, {1, 1})})),
                testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                  ::testing::HasSubstr("a row of float32 probabilities")));
  }
  EXPECT_FALSE(FileExists(path + ".part"));
  EXPECT_FALSE(FileExists(path));
  PredictionFile nowhere(dir.path() + "/absent/out.csv", {}, false);
  EXPECT_FALSE(nowhere.Open().ok());
}

}  // namespace
}  // namespace mu
