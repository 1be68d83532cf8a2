// `coordinator export` on what a real run has left.
#include <gmock/gmock.h>

#include <cstdio>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExportCommandTest : public testing::CliTest {
 protected:
  absl::StatusOr<std::string> UnpackedTestRows() {
    std::string text;
    const int code = Read(absl::StrCat("gzip -dc ", Path("log/test.tsv.gz")), &text);
    if (code != 0) return absl::InternalError(text);
    return text;
  }
  static int Python(const std::vector<std::string>& args, std::string* output) {
    return Read(
        absl::StrCat("python3 ", MUSTER_SERVE_FROM_PAGE, " ", absl::StrJoin(args, " "), " 2>&1"),
        output);
  }
  // Of `predict` in predictions.csv, and of the script.
  void ExpectSamePredictions(const std::string& served, size_t records) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string predicted, ReadFile(Path("predictions.csv")));
    const std::vector<std::string> ours = absl::StrSplit(predicted, '\n', absl::SkipEmpty());
    const std::vector<std::string> theirs = absl::StrSplit(served, '\n', absl::SkipEmpty());
    ASSERT_EQ(theirs.size(), records);
    ASSERT_EQ(ours.size(), records + 1) << "a header";
    double least = 1, most = 0;
    for (size_t i = 0; i < theirs.size(); ++i) {
      const double value = std::stod(theirs[i]);
      EXPECT_NEAR(std::stod(ours[i + 1]), value, 1e-5) << "line " << i;
      least = std::min(least, value);
      most = std::max(most, value);
    }
    EXPECT_GT(most - least, 0.1) << "the predictions say nothing";
  }

 private:
  static int Read(const std::string& command, std::string* output) {
    output->clear();
    FILE* pipe = popen(command.c_str(), "r");
    char buffer[4096];
    while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) output->append(buffer, n);
    return pclose(pipe);
  }
};

TEST_F(ExportCommandTest, TablesAndVariablesOfARun) {
  ASSERT_EQ(Run({"train", Job(), "--ps=2", "--job_dir=" + Path("run")}), 0) << Output();
  MU_ASSERT_OK_AND_ASSIGN(const std::string checkpoint, FindCheckpoint(Path("run")));
  // By the job file and its run, by the run's directory, and by the checkpoint.
  const std::vector<std::vector<std::string>> sources = {{Job(), "--job_dir=" + Path("run")},
                                                         {Job(), "--checkpoint=" + checkpoint},
                                                         {Path("run")},
                                                         {checkpoint}};
  std::string first;
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::string folder = Path(absl::StrCat("npy-", i));
    std::vector<std::string> args = {"export"};
    args.insert(args.end(), sources[i].begin(), sources[i].end());
    args.insert(args.end(), {"--npy=" + folder, "--safetensors=" + folder + ".safetensors"});
    ASSERT_EQ(Run(args), 0) << Output();
    EXPECT_THAT(
        Output(),
        AllOf(HasSubstr("exports " + checkpoint), HasSubstr(folder + "/user.npy: float32[10, 4]"),
              HasSubstr(folder + "/item_bias.npy: float32[20, 1]"), HasSubstr("4 tensors")));
    MU_ASSERT_OK_AND_ASSIGN(const std::string items, ReadFile(folder + "/item.npy"));
    EXPECT_EQ(items.size(), 128 + 20 * 4 * sizeof(float));
    if (i == 0) first = items;
    EXPECT_EQ(items, first);
    EXPECT_TRUE(FileExists(folder + ".safetensors"));
  }
  ASSERT_EQ(Run({"export", Path("run"), "--npy=" + Path("some"), "--name=user*"}), 0) << Output();
  EXPECT_THAT(ListDirectory(Path("some")).value_or(std::vector<std::string>()),
              ::testing::ElementsAre("user.npy", "user_bias.npy"));
}

// docs/checkpoint_format.md is enough to serve a model: a script that was written from it alone
// predicts what `predict` does, and knows all rows of whole tables.
TEST_F(ExportCommandTest, AModelThatTheCheckpointIsNotOf) {
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("run")}), 0) << Output();
  EXPECT_EQ(Run({"export", Job({{"dim: 4", "dim: 8"}}), "--checkpoint=" + Path("run"),
                 "--onnx=" + Path("m.onnx")}),
            2);
  EXPECT_THAT(Output(), AllOf(HasSubstr("1 problem; nothing was written:\n--checkpoint: "),
                              HasSubstr("does not fit the model: "),
                              HasSubstr("; name one of this model with --checkpoint=DIR")));
  EXPECT_FALSE(FileExists(Path("m.onnx")));
}

TEST_F(ExportCommandTest, ThePageIsEnoughToServeAModel) {
  ASSERT_EQ(Run({"make-data", "criteo", "--rows=3000", "--test_rows=500", "--out=" + Path("log")}),
            0);
  WriteText("clicks.yaml",
            "name: clicks\n"
            "data:\n"
            "  train: {format: criteo_tsv, files: [log/train-*.tsv.gz]}\n"
            "  predict: {format: criteo_tsv, files: [log/test.tsv]}\n"
            "model:\n"
            "  logistic_regression:\n"
            "    features:\n"
            "      - {column: dense, size: 13}\n"
            "      - {column: ids, kind: id, size: 26, rows: 5000}\n"
            "    label_column: label\n"
            "optimizer: {adagrad: {learning_rate: 0.05}}\n"
            "training: {batch_size: 64}\n");
  MU_ASSERT_OK_AND_ASSIGN(std::string test, UnpackedTestRows());
  // Fields that are empty, and texts that are no eight hexadecimal digits.
  const size_t line = test.find('\n');
  std::vector<std::string> fields = absl::StrSplit(test.substr(0, line), '\t');
  ASSERT_EQ(fields.size(), 40u);
  fields[2] = "", fields[5] = "-3", fields[14] = "", fields[15] = "shoes";
  fields[16] = "a text of more than eight bytes";
  absl::StrAppend(&test, absl::StrJoin(fields, "\t"), "\n");
  WriteText("log/test.tsv", test);
  ASSERT_EQ(Run({"train", Path("clicks.yaml"), "--job_dir=" + Path("run")}), 0) << Output();
  ASSERT_EQ(Run({"predict", Path("clicks.yaml"), "--checkpoint=" + Path("run"),
                 "--job_dir=" + Path("predicted"), "--out=" + Path("predictions.csv")}),
            0)
      << Output();
  MU_ASSERT_OK_AND_ASSIGN(const std::string checkpoint, FindCheckpoint(Path("run")));
  std::string served;
  ASSERT_EQ(Python({"predict", checkpoint, "5000", Path("log/test.tsv")}, &served), 0) << served;
  ExpectSamePredictions(served, 501);

  // Initial values that are not zero: normal ones of the small job, uniform ones of a DLRM.
  ASSERT_EQ(Run({"train", Job({{"items: 20", "items: 2000"}}), "--job_dir=" + Path("mf")}), 0);
  MU_ASSERT_OK_AND_ASSIGN(const std::string factors, FindCheckpoint(Path("mf")));
  ASSERT_EQ(Run({"export", factors, "--safetensors=" + Path("mf.safetensors")}), 0) << Output();
  EXPECT_EQ(Python({"compare", factors, Path("mf.safetensors")}, &served), 0) << served;
  EXPECT_EQ(served, "60 rows of the checkpoint, 3960 initial ones\n");
  WriteText("dlrm.yaml",
            "name: dlrm\n"
            "data: {train: {format: criteo_tsv, files: [log/test.tsv]}}\n"
            "model: {dlrm: {embedding_dim: 4, hash_buckets: 300, bottom_mlp: [4], top_mlp: [1]}}\n"
            "optimizer: {sgd: {learning_rate: 0.05}}\n"
            "training: {max_steps: 1, batch_size: 32}\n");
  ASSERT_EQ(Run({"train", Path("dlrm.yaml"), "--job_dir=" + Path("dlrm")}), 0) << Output();
  MU_ASSERT_OK_AND_ASSIGN(const std::string dlrm, FindCheckpoint(Path("dlrm")));
  ASSERT_EQ(Run({"export", dlrm, "--safetensors=" + Path("dlrm.safetensors")}), 0) << Output();
  EXPECT_EQ(Python({"compare", dlrm, Path("dlrm.safetensors")}, &served), 0) << served;
}

TEST_F(ExportCommandTest, ThePageSaysHowColumnsBecomeIds) {
  std::string train = "age,job,city,label\n", records = "age,job,city\n";
  for (int i = 0; i < 800; ++i) {
    const std::string record = absl::StrCat(i % 11 == 0 ? "" : absl::StrCat(15 + i * 7 % 60), ",",
                                            i % 13 == 0 ? "" : absl::StrCat("job number ", i % 17),
                                            ",", i % 7 == 0 ? "" : absl::StrCat("city", i % 5));
    absl::StrAppend(&train, record, ",", (i * 7 % 60 + i % 17) % 3 == 0 ? 1 : 0, "\n");
    if (i < 300) absl::StrAppend(&records, record, "\n");
  }
  WriteText("train.csv", train);
  WriteText("records.csv", records);
  const std::string columns =
      "    columns:\n"
      "      - {name: age_bucket, field: age, kind: bucket, boundaries: [20, 40, 60]}\n"
      "      - {name: job, kind: hash, buckets: 20, seed: 7}\n"
      "      - {name: city, kind: hash, buckets: 20}\n"
      "      - {name: job_city, kind: cross, of: [job, city], buckets: 50}\n"
      "      - {name: age_job, kind: cross, of: [age_bucket, job], buckets: 50}\n";
  std::string features;
  for (const auto& [column, rows] :
       {std::pair("age_bucket", 5), {"job", 20}, {"city", 20}, {"job_city", 50}, {"age_job", 50}})
    absl::StrAppend(&features, "      - {column: ", column, ", kind: id, rows: ", rows, "}\n");
  WriteText(
      "columns.yaml",
      absl::StrCat("name: columns\ndata:\n  train:\n    format: csv\n    files: [train.csv]\n",
                   columns, "      - {name: label, kind: label, positive: [\"1\"]}\n",
                   "  predict:\n    format: csv\n    files: [records.csv]\n", columns,
                   "model:\n  logistic_regression:\n    features:\n", features,
                   "    label_column: label\n"
                   "optimizer: {adagrad: {learning_rate: 0.1}}\n"
                   "training: {batch_size: 32, epochs: 3}\n"));
  ASSERT_EQ(Run({"train", Path("columns.yaml"), "--job_dir=" + Path("run")}), 0) << Output();
  ASSERT_EQ(Run({"predict", Path("columns.yaml"), "--checkpoint=" + Path("run"),
                 "--job_dir=" + Path("predicted"), "--out=" + Path("predictions.csv")}),
            0)
      << Output();
  MU_ASSERT_OK_AND_ASSIGN(const std::string checkpoint, FindCheckpoint(Path("run")));
  std::string served;
  ASSERT_EQ(Python({"predict_csv", checkpoint, Path("records.csv")}, &served), 0) << served;
  ExpectSamePredictions(served, 300);
}

TEST_F(ExportCommandTest, WhatIsWrong) {
  EXPECT_EQ(Run({"export", Job()}), 2);
  EXPECT_THAT(Output(), AllOf(HasSubstr("nothing says what to write"), HasSubstr("no run of small"),
                              HasSubstr("train first")));
  EXPECT_EQ(Run({"export", Path("nowhere.yaml"), "--npy=" + Path("npy")}), 2);
  EXPECT_THAT(Output(), HasSubstr("there is no such job file"));
  MU_ASSERT_OK(MakeDirectories(Path("empty")));
  EXPECT_EQ(Run({"export", Path("empty"), "--npy=" + Path("data.csv"),
                 "--safetensors=" + Path("empty"), "--checkpoint=" + Path("empty")}),
            2);
  EXPECT_THAT(Output(), AllOf(HasSubstr("4 problems; nothing was written"),
                              HasSubstr("data.csv is a file"), HasSubstr("empty is a folder"),
                              HasSubstr("--checkpoint and --job_dir mean nothing")));
  // The data need not be there.
  MU_ASSERT_OK(RemoveFile(Path("data.csv")));
  EXPECT_EQ(Run({"export", Job(), "--npy=" + Path("npy"), "--job_dir=" + Path("empty")}), 2);
  EXPECT_THAT(Output(), AllOf(HasSubstr("1 problem;"), HasSubstr("name a checkpoint")));
}

}  // namespace
}  // namespace mu
