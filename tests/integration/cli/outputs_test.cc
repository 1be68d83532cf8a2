// What commands write never replaces what they read.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>

#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class OutputsTest : public testing::CliTest {
 protected:
  // Runs the command, which must refuse the output and leave `kept` as it was.
  void ExpectRefused(std::vector<std::string> args, const std::string& kept,
                     const std::string& problem) {
    const std::string before = ReadFile(Path(kept)).value();
    EXPECT_EQ(Run(std::move(args)), 2);
    EXPECT_THAT(Output(), HasSubstr(problem));
    EXPECT_EQ(ReadFile(Path(kept)).value(), before) << problem;
  }
};

TEST_F(OutputsTest, NeitherTheJobFileNorItsDataAreReplaced) {
  const std::string job = Job();
  ASSERT_EQ(::symlink("data.csv", Path("link.csv").c_str()), 0);
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run"), "--report=" + Path("run/report.json")}),
            0)
      << Output();
  const std::string run = "--checkpoint=" + Path("run");
  const std::string predict_data =
      "--set=data.predict={format: csv, files: [data.csv], columns: "
      "[{name: user, kind: id}, {name: item, kind: id}]}";
  ExpectRefused({"train", job, "--report=" + job}, "job.yaml", "--report: " + job + " is the job");
  ExpectRefused({"train", job, "--trace=" + Path("link.csv")}, "data.csv",
                "--trace: " + Path("link.csv") + " is a data file of the job (data.train.files)");
  EXPECT_EQ(::access(Path("link.csv").c_str(), F_OK), 0);
  ExpectRefused({"predict", job, predict_data, run, "--out=" + Path("data.csv")}, "data.csv",
                "--out: " + Path("data.csv") + " is a data file of the job");
  ExpectRefused({"stats", job, "--out=" + job}, "job.yaml", "--out: " + job + " is the job file");
  ExpectRefused({"make-vocab", job, "--column=user", "--out=" + Path("data.csv")}, "data.csv",
                "--out: " + Path("data.csv") + " is a data file of the job");
  ExpectRefused({"export", job, run, "--onnx=" + Path("data.csv")}, "data.csv",
                "--onnx: " + Path("data.csv") + " is a data file of the job");
  ExpectRefused({"export", job, run, "--safetensors=" + job}, "job.yaml",
                "--safetensors: " + job + " is the job file");
  ExpectRefused({"export", Path("run"), "--safetensors=" + Path("run/job.json")}, "run/job.json",
                "is what Muster keeps in ");
}

// Of the run that is followed, or whose checkpoint is read, and by whatever path.
TEST_F(OutputsTest, NorWhatARunKeeps) {
  const std::string job =
      Job({{"model:",
            "  eval: {format: csv, files: [data.csv], columns: [{name: user, kind: id}, "
            "{name: item, kind: id}, {name: rating, kind: number}]}\nmodel:"}});
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 0) << Output();
  WriteText("run/evaluations.json", "[]\n");
  ASSERT_EQ(::symlink("run", Path("link").c_str()), 0);
  ASSERT_EQ(::symlink("run/evaluations.json", Path("link.json").c_str()), 0);
  const std::string follower = "--job_dir=" + Path("follower");
  for (const char* run : {"run", "link", "run/checkpoints"}) {
    for (const char* record : {"run/evaluations.json", "link/evaluations.json",
                               "run/../run/evaluations.json", "link.json"})
      ExpectRefused({"eval", job, "--follow=" + Path(run), follower, "--report=" + Path(record)},
                    "run/evaluations.json",
                    "--report: " + Path(record) + " is what `coordinator eval --follow` keeps in ");
    ExpectRefused(
        {"eval", job, "--follow=" + Path(run), follower, "--report=" + Path("run/report.json")},
        "run/report.json", "is the report of what was trained in ");
  }
  for (const char* other : {"--job_dir=", "--checkpoint="}) {
    const std::string run = other + Path("run");
    ExpectRefused({"eval", job, run, "--report=" + Path("run/report.json")}, "run/report.json",
                  "is the report of what was trained in ");
    ExpectRefused({"predict", job, run, "--out=" + Path("run/report.json")}, "run/report.json",
                  "--out: " + Path("run/report.json") + " is the report of what was trained in ");
    ExpectRefused({"eval", job, run, "--trace=" + Path("run/logs/coordinator.log")},
                  "run/logs/coordinator.log", "is a log of what ran in ");
  }
  ExpectRefused({"export", Path("run"), "--safetensors=" + Path("run/report.json")},
                "run/report.json", "is the report of what was trained in ");
  ExpectRefused({"train", job, "--job_dir=" + Path("next"), "--checkpoint=" + Path("run"),
                 "--report=" + Path("run/report.json")},
                "run/report.json", "is the report of what was trained in ");
  // The training's own it replaces.
  EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("run"), "--train_again",
                 "--report=" + Path("run/report.json")}),
            0)
      << Output();
}

TEST_F(OutputsTest, NorAnArrayThatTheExportWouldWriteOver) {
  const std::string job = Job();
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 0) << Output();
  MU_ASSERT_OK(MakeDirectories(Path("out")));
  WriteText("out/user.npy", "mine");
  ExpectRefused({"export", Job({{"[data.csv]", "[data.csv, out/user.npy]"}}),
                 "--checkpoint=" + Path("run"), "--npy=" + Path("out")},
                "out/user.npy", "--npy: " + Path("out/user.npy") + " is a data file of the job");
  EXPECT_FALSE(FileExists(Path("out/item.npy")));
}

TEST_F(OutputsTest, AVocabularyIsMadeAnewOnlyFromItsOwnColumn) {
  WriteText("words.txt", "old\n");
  const std::string job =
      Job({{"{name: user, kind: id}", "{name: user, kind: vocabulary, vocabulary: words.txt}"}});
  ExpectRefused({"make-vocab", job, "--column=item", "--out=" + Path("words.txt")}, "words.txt",
                "is the vocabulary of the column user (data.train), which would be lost");
  EXPECT_EQ(Run({"make-vocab", job, "--column=user", "--out=" + Path("words.txt")}), 0) << Output();
  EXPECT_THAT(ReadFile(Path("words.txt")).value(), Not(HasSubstr("old")));
}

TEST_F(OutputsTest, AFolderThatIsMissingIsFoundFirst) {
  const std::string missing = Path("new/x.json");
  const std::string said = "there is no folder " + Path("new") + "; make it, or name another file";
  const std::string job = Job();
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"train", job, "--report=" + missing},
        {"stats", job, "--out=" + missing},
        {"make-vocab", job, "--column=user", "--out=" + missing}}) {
    EXPECT_EQ(Run(args), 2);
    EXPECT_THAT(Output(), HasSubstr(said)) << args[0];
    EXPECT_THAT(Output(), Not(HasSubstr("\nreport: "))) << args[0];
    EXPECT_FALSE(FileExists(Path("new"))) << args[0];
  }
  EXPECT_EQ(Run({"stats", job, "--out=" + Path("")}), 2);
  EXPECT_THAT(Output(), HasSubstr(" is a folder; name a file\n"));
  // The run's own folder is made.
  EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("run"), "--report=" + Path("run/x.json")}), 0)
      << Output();
  EXPECT_EQ(Report(Path("run/x.json"))["status"], "done");
}

// The file is written under another name until it is whole.
TEST_F(OutputsTest, NorAnInputThatIsCalledLikeAPartOfTheOutput) {
  const std::string job = Job();
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 0) << Output();
  const std::string records = "user,item\n1,2\n3,4\n";
  WriteText("p.csv.part", records);
  EXPECT_EQ(Run({"predict", job, "--checkpoint=" + Path("run"), "--out=" + Path("p.csv"),
                 "--set=data.predict={format: csv, files: [p.csv.part], columns: "
                 "[{name: user, kind: id}, {name: item, kind: id}]}"}),
            0)
      << Output();
  EXPECT_EQ(ReadFile(Path("p.csv.part")).value_or(""), records);
  const std::string predictions = ReadFile(Path("p.csv")).value_or("");
  EXPECT_EQ(std::count(predictions.begin(), predictions.end(), '\n'), 3) << predictions;
}

TEST_F(OutputsTest, ColumnsToCopyAreNamedOnce) {
  const std::string job = Job();
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 0) << Output();
  const std::string run = "--checkpoint=" + Path("run");
  const std::string data =
      "--set=data.predict={format: csv, files: [data.csv], columns: "
      "[{name: user, kind: id}, {name: item, kind: id}]}";
  EXPECT_EQ(Run({"predict", job, data, run, "--columns=user,item,user,user"}), 2);
  EXPECT_THAT(Output(), HasSubstr("1 problem; nothing was started:\n--columns: names user twice; "
                                  "name it once\n"));
  EXPECT_EQ(Run({"predict", job, data, run, "--columns=", "--out=" + Path("p.csv")}), 2);
  EXPECT_THAT(Output(), HasSubstr("--columns: there is no value after `=`"));
}

}  // namespace
}  // namespace mu
