#include "coordinator/cli/output_check.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/env/file_identity.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

class OutputCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TempDirectory::Create("output_check_test");
    MU_ASSERT_OK(directory);
    directory_.emplace(*std::move(directory));
    for (const char* name : {"job.yaml", "train.csv", "eval.csv", "predict.csv", "labels.idx",
                             "column.npy", "words.txt"})
      MU_ASSERT_OK(WriteFileAtomic(Path(name), "x"));
    MU_ASSERT_OK(MakeDirectories(Path("warm/part")));
    auto* data = job_.mutable_data();
    data->mutable_train()->add_files(Path("train.csv"));
    auto* column = data->mutable_train()->add_columns();
    column->set_name("city");
    column->set_vocabulary(Path("words.txt"));
    data->mutable_eval()->add_files(Path("eval.csv"));
    data->mutable_eval()->add_labels(Path("labels.idx"));
    data->mutable_predict()->add_files(Path("predict.csv"));
    data->mutable_predict()->add_columns()->add_files(Path("column.npy"));
    job_.mutable_warm_start()->set_checkpoint(Path("warm"));
  }
  std::string Path(const std::string& name) const { return JoinPath(directory_->path(), name); }
  // What is said of an output to this path.
  std::string ProblemsOf(const std::string& path) const {
    ProblemList problems;
    CheckOutputs({{.place = Place{"--out"}, .path = path}}, InputsOf(Path("job.yaml"), job_),
                 &problems);
    return problems.ToString();
  }

  muster::JobProto job_;

 private:
  std::optional<TempDirectory> directory_;
};

TEST_F(OutputCheckTest, NothingThatAJobReadsIsReplaced) {
  const std::pair<const char*, const char*> inputs[] = {
      {"job.yaml", "the job file"},
      {"train.csv", "a data file of the job (data.train.files)"},
      {"eval.csv", "a data file of the job (data.eval.files)"},
      {"labels.idx", "a data file of the job (data.eval.labels)"},
      {"predict.csv", "a data file of the job (data.predict.files)"},
      {"column.npy", "a data file of the job (data.predict.columns, )"},
      {"words.txt", "the vocabulary of the column city (data.train)"}};
  for (const auto& [name, what] : inputs) {
    EXPECT_EQ(ProblemsOf(Path(name)), absl::StrCat("--out: ", Path(name), " is ", what,
                                                   ", which would be lost; name another file\n"));
  }
  EXPECT_THAT(ProblemsOf(Path("warm/part/values")),
              HasSubstr("is a part of what the job's warm_start names, which would be lost"));
  EXPECT_EQ(ProblemsOf(Path("other.csv")), "");
  EXPECT_EQ(ProblemsOf(""), "");
}

TEST_F(OutputCheckTest, NeitherByALink) {
  ASSERT_EQ(::symlink("train.csv", Path("soft").c_str()), 0);
  ASSERT_EQ(::link(Path("train.csv").c_str(), Path("hard").c_str()), 0);
  ASSERT_EQ(::symlink(".", Path("here").c_str()), 0);
  for (const char* name : {"soft", "hard", "here/train.csv", "warm/../train.csv"})
    EXPECT_THAT(ProblemsOf(Path(name)), HasSubstr("is a data file of the job")) << name;
  // The files of a cluster's workers need not be here.
  job_.mutable_data()->mutable_train()->add_files(Path("far.csv"));
  EXPECT_THAT(ProblemsOf(Path("here/far.csv")), HasSubstr("is a data file of the job"));
}

TEST_F(OutputCheckTest, WhereNoFileCanBe) {
  EXPECT_EQ(ProblemsOf(Path("warm")),
            absl::StrCat("--out: ", Path("warm"),
                         " is what the job's warm_start names, which would be lost; name another "
                         "file\n"));
  MU_ASSERT_OK(MakeDirectories(Path("folder")));
  EXPECT_EQ(ProblemsOf(Path("folder")),
            absl::StrCat("--out: ", Path("folder"), " is a folder; name a file\n"));
  EXPECT_EQ(ProblemsOf(Path("no/x.csv")), absl::StrCat("--out: there is no folder ", Path("no"),
                                                       "; make it, or name another file\n"));
  MU_ASSERT_OK(WriteFileAtomic(Path("file"), ""));
  EXPECT_EQ(ProblemsOf(Path("file/x.csv")),
            absl::StrCat("--out: ", Path("file"), " is a file; name a file in a folder\n"));
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(ProblemsOf(Path("pipe")), HasSubstr("is a device, a pipe or a socket; name a file"));
  EXPECT_THAT(ProblemsOf("/dev/null"), HasSubstr("is a device, a pipe or a socket; name a file"));
  EXPECT_THAT(ProblemsOf("/dev/new"), HasSubstr("there are no files in /dev"));
  EXPECT_THAT(ProblemsOf("/proc/self/new"), HasSubstr("there are no files in /proc/self"));
}

TEST_F(OutputCheckTest, AFolderThatIsMade) {
  ProblemList problems;
  CheckOutputs({{.place = Place{"--npy"}, .path = Path("no/x.npy"), .folder_is_made = true}}, {},
               &problems);
  EXPECT_EQ(problems.ToString(), "");
}

TEST_F(OutputCheckTest, TwoOutputsAreTwoFiles) {
  ProblemList problems;
  CheckOutputs({{.place = Place{"--report"}, .path = Path("x.json")},
                {.place = Place{"--trace"}, .path = Path("warm/../x.json")},
                {.place = Place{"--out"}, .path = Path("y.json")}},
               {}, &problems);
  EXPECT_EQ(problems.ToString(), absl::StrCat("--trace: ", Path("warm/../x.json"),
                                              " is what --report names, too; name another file\n"));
}

TEST_F(OutputCheckTest, WhatMusterKeepsInARun) {
  for (const char* folder : {"run/checkpoints/ckpt-1", "run/followed/ckpt-1", "run/logs"})
    MU_ASSERT_OK(MakeDirectories(Path(folder)));
  EXPECT_EQ(RunOfCheckpoint(Path("run/checkpoints/ckpt-1")), "") << "nothing says that a job ran";
  MU_ASSERT_OK(MakeDirectories(Path("program/checkpoints/ckpt-1")));
  MU_ASSERT_OK(WriteFileAtomic(Path("program/run.json"), ""));
  EXPECT_EQ(FileIdentity(RunOfCheckpoint(Path("program/checkpoints/ckpt-1"))),
            FileIdentity(Path("program")));
  for (const char* file : {"run/job.json", "run/logs/coordinator.log"})
    MU_ASSERT_OK(WriteFileAtomic(Path(file), ""));
  const std::string run = RunOfCheckpoint(Path("run/checkpoints/ckpt-1"));
  EXPECT_EQ(FileIdentity(run), FileIdentity(Path("run")));
  EXPECT_EQ(RunOfCheckpoint(Path("run/followed/ckpt-1")), run);
  EXPECT_EQ(RunOfCheckpoint(""), "");
  EXPECT_EQ(RunOfCheckpoint(Path("run/elsewhere/ckpt-1")), "");
  const auto refused = [this](const std::vector<InputFile>& kept, const std::string& name) {
    ProblemList problems;
    CheckOutputs(
        {{.place = Place{"--out"}, .path = JoinPath(Path("run"), name), .folder_is_made = true}},
        kept, &problems);
    return !problems.empty();
  };
  for (const char* name :
       {"job.json", "run.json", "lock", "checkpoints/ckpt-1/manifest.json", "epochs/1", "layouts/x",
        "logs/coordinator.log", "cache/x", "evaluation_cache/x", "followed/ckpt-1/manifest.json",
        "evaluations.json"})
    EXPECT_TRUE(refused(RunFilesOf(run), name)) << name;
  for (const char* name : {"report.json", "predictions.csv", "log.json", "logs/trace.json"})
    EXPECT_FALSE(refused(RunFilesOf(run), name)) << name;
  EXPECT_TRUE(refused(FilesOfTrainedRun(run), "report.json"));
  EXPECT_TRUE(refused(FilesOfTrainedRun(run), "evaluations.json"));
  EXPECT_FALSE(refused(FilesOfTrainedRun(run), "eval_report.json"));
}

}  // namespace
}  // namespace mu
