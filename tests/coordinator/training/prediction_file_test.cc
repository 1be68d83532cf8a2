#include "coordinator/training/prediction_file.h"

#include <unistd.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/env/compression.h"
#include "common/env/file.h"
#include "common/graph/dataset_schema.h"
#include "common/records/packed_text.h"
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
  EXPECT_THAT(*ListDirectory(dir.path()), ::testing::ElementsAre("out.csv"));
}

// Of more than is written at once.
TEST(PredictionFile, IsCompressedAsItsNameSays) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory dir, TempDirectory::Create("predictions_"));
  constexpr uint32_t kRecords = 400'000;
  for (const char* name : {"out.csv.gz", "out.csv.zst"}) {
    const std::string path = JoinPath(dir.path(), name);
    PredictionFile file(path, {.tasks = {TaskCalled("", Task::kRegression)}}, false);
    MU_ASSERT_OK(file.Open());
    for (int i = 0; i < 2; ++i) {
      MU_ASSERT_OK(
          file.Add(Of(kRecords, {Floats({kRecords}, std::vector<float>(kRecords, 0.5f))})));
    }
    MU_ASSERT_OK(file.Close());
    MU_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ByteStream> stream, OpenUnpacked(path));
    std::string text(8 * kRecords + 100, ' ');
    size_t size = 0;
    while (true) {
      MU_ASSERT_OK_AND_ASSIGN(const size_t n, stream->Read(text.data() + size, text.size() - size));
      if (n == 0) break;
      size += n;
    }
    text.resize(size);
    EXPECT_EQ(text.substr(0, 18), "prediction\n0.5\n0.5");
    EXPECT_EQ(text.size(), 11 + 2 * size_t{kRecords} * 4);
  }
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
  EXPECT_EQ(file.returns(), (std::vector<std::string>{"prediction", "column.user", "column.age"}));
  MU_ASSERT_OK(file.Open());
  const std::vector<int64_t> users = {-7, 1L << 40};
  MU_ASSERT_OK(file.Add(
      Of(2, {Floats({2}, {0.5f, 2}), Tensor::Of<int64_t>({2}, users), Floats({2}, {30, 1e-8f})},
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

std::string HeaderOf(const std::vector<ForwardTask>& tasks, const std::vector<std::string>& copied,
                     bool with_skipped) {
  const absl::StatusOr<TempDirectory> dir = TempDirectory::Create("predictions_");
  MU_EXPECT_OK(dir.status());
  Forward forward{.tasks = tasks};
  for (const std::string& name : copied)
    forward.columns.push_back({.name = name, .value = absl::StrCat("column.", name)});
  const std::string path = dir->path() + "/out.csv";
  PredictionFile file(path, forward, with_skipped);
  MU_EXPECT_OK(file.Open());
  MU_EXPECT_OK(file.Close());
  return ReadFile(path).value_or("");
}

TEST(PredictionFile, NoTwoColumnsHaveOneName) {
  const std::vector<ForwardTask> tasks = {TaskCalled("income", Task::kBinaryClassification),
                                          TaskCalled("never_married", Task::kBinaryClassification)};
  EXPECT_EQ(HeaderOf(tasks, {"income", "age", "never_married"}, false),
            "income.data,age,never_married.data,income,never_married\n");
  const std::vector<ForwardTask> classes = {TaskCalled("", Task::kMultiClass)};
  EXPECT_EQ(HeaderOf(classes, {"class", "prediction", "probability"}, false),
            "class.data,prediction,probability.data,class,probability\n");
  EXPECT_EQ(HeaderOf({TaskCalled("kind", Task::kMultiClass)}, {"class", "kind_class"}, false),
            "class,kind_class.data,kind_class,kind_probability\n");
  const std::vector<ForwardTask> one = {TaskCalled("", Task::kRegression)};
  EXPECT_EQ(HeaderOf(one, {"prediction", "skipped"}, true),
            "prediction.data,skipped.data,prediction,skipped\n");
  EXPECT_EQ(HeaderOf(one, {"skipped"}, false), "skipped,prediction\n");
  // The data may have a column of the longer name, too.
  EXPECT_EQ(HeaderOf(one, {"prediction", "prediction.data"}, false),
            "prediction.data.data,prediction.data,prediction\n");
}

TEST(PredictionFile, AFullDiskIsNamed) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory dir, TempDirectory::Create("predictions_"));
  const std::string path = dir.path() + "/out.csv";
  const std::string partly = absl::StrCat(path, ".part-", ::getpid());
  ASSERT_EQ(::symlink("/dev/full", partly.c_str()), 0);
  {
    PredictionFile file(path, {.tasks = {TaskCalled("", Task::kRegression)}}, false);
    MU_ASSERT_OK(file.Open());
    MU_ASSERT_OK(file.Add(Of(1, {Floats({1}, {0.1f})})));
    EXPECT_THAT(file.Close(),
                testing::StatusIs(absl::StatusCode::kResourceExhausted,
                                  "cannot write " + partly + ": No space left on device"));
  }
  EXPECT_THAT(*ListDirectory(dir.path()), ::testing::IsEmpty());
}

TEST(PredictionFile, AFileThatCannotBeMadeIsNamed) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory dir, TempDirectory::Create("predictions_"));
  const std::string path = dir.path() + "/nowhere/out.csv";
  PredictionFile file(path, {.tasks = {TaskCalled("", Task::kRegression)}}, false);
  EXPECT_THAT(file.Open(),
              testing::StatusIs(absl::StatusCode::kNotFound,
                                absl::StrCat("cannot write ", path, ".part-", ::getpid(),
                                             ": No such file or directory")));
}

// A column's packed texts, and its splits.
std::vector<Tensor> Texts(const std::vector<std::string>& texts) {
  ColumnSet columns(SchemaOf([] {
                      pb::DatasetProto dataset;
                      pb::CsvColumnProto* const column = dataset.mutable_csv()->add_columns();
                      column->set_name("x");
                      column->set_kind(pb::CsvColumnProto::TEXT);
                      return dataset;
                    }()),
                    /*capacity=*/10);
  std::vector<uint32_t> rows;
  for (const std::string& text : texts) {
    PackText(text, 0, &columns);
    columns.CommitRow();
    rows.push_back(static_cast<uint32_t>(rows.size()));
  }
  return columns.Gather(rows).columns;
}

TEST(PredictionFile, TextsAreCopiedAsTheyAre) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory dir, TempDirectory::Create("predictions_"));
  const std::string path = dir.path() + "/out.csv";
  const CopiedColumn city{.name = "city, \"town\"", .texts = "c", .splits = "c.splits"};
  PredictionFile file(path,
                      {.tasks = {TaskCalled("", Task::kRegression)},
                       .columns = {city,
                                   {.name = "age", .value = "column.age"},
                                   {.name = "day", .texts = "d", .splits = "d.splits"}}},
                      false);
  EXPECT_EQ(file.returns(), (std::vector<std::string>{"prediction", "column.age"}));
  EXPECT_EQ(file.returned_lists(), (std::vector<std::string>{"c", "c.splits", "d", "d.splits"}));
  MU_ASSERT_OK(file.Open());
  const std::string long_text(1000, 'x');
  const std::vector<Tensor> cities = Texts({"Bonn", "", "New \"York\", NY", long_text, "a\nb"});
  const std::vector<Tensor> days =
      Texts({"12345678", "0123456789", " 7", std::string("a\0b", 3), "é"});
  MU_ASSERT_OK(file.Add(Of(5, {Floats({5}, {1, 2, 3, 4, 5}), Floats({5}, {6, 7, 8, 9, 10}),
                               cities[0], cities[1], days[0], days[1]})));
  MU_ASSERT_OK(file.Close());
  EXPECT_EQ(*ReadFile(path),
            "\"city, \"\"town\"\"\",age,day,prediction\n"
            "Bonn,6,12345678,1\n"
            ",7,0123456789,2\n"
            "\"New \"\"York\"\", NY\",8, 7,3\n" +
                long_text + ",9," + std::string("a\0b", 3) +
                ",4\n"
                "\"a\nb\",10,é,5\n");
}

// What a worker sends is not believed.
TEST(PredictionFile, TextsThatAreNoListsAreRefused) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory dir, TempDirectory::Create("predictions_"));
  PredictionFile file(dir.path() + "/out.csv",
                      {.tasks = {TaskCalled("", Task::kRegression)},
                       .columns = {{.name = "x", .texts = "x", .splits = "x.splits"}}},
                      false);
  MU_ASSERT_OK(file.Open());
  const Tensor two = Floats({2}, {1, 2});
  const std::vector<Tensor> good = Texts({"a", "b"});
  MU_ASSERT_OK(file.Add(Of(2, {two, good[0], good[1]})));
  const auto refused = [&](const Tensor& values, const Tensor& splits) {
    EXPECT_THAT(file.Add(Of(2, {two, values, splits})),
                testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                  ::testing::HasSubstr("column 'x' has no text for each of 2")));
  };
  refused(good[0], Texts({"a"})[1]);
  refused(good[0], Tensor::Of<int32_t>({3}, {0, 2, 5}));
  refused(good[0], Tensor::Of<int32_t>({3}, {0, 5, 4}));
  refused(good[0], Tensor::Of<int32_t>({3}, {1, 2, 4}));
  refused(two, good[1]);
  refused(good[0], two);
  // The lengths within the list are not believed either.
  EXPECT_EQ(UnpackText({-1, 97}), "");
  EXPECT_EQ(UnpackText({int64_t{1} << 62, 97}), std::string("a\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(UnpackText({}), "");
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
  EXPECT_THAT(*ListDirectory(dir.path()), ::testing::IsEmpty());
  PredictionFile nowhere(dir.path() + "/absent/out.csv", {}, false);
  EXPECT_FALSE(nowhere.Open().ok());
}

}  // namespace
}  // namespace mu
