// What is wrong with a user's data, through the real program: where it is and what to do, and
// nothing that passes in silence.
#include <gmock/gmock.h>

#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BadDataTest : public testing::CliTest {
 protected:
  // Good ones of the small job.
  static std::string Rows(int count) {
    std::string rows;
    for (int i = 0; i < count; ++i) absl::StrAppend(&rows, i % 10, ",", i % 20, ",3\n");
    return rows;
  }
};

TEST_F(BadDataTest, BadDataLine) {
  WriteText("bad.csv", "user,item,rating\n" + Rows(200) + "1,two,3\n" + Rows(1));
  const std::string job = Job({{"data.csv", "bad.csv"}});
  EXPECT_EQ(Run({"check", job}), 0) << "it is too far behind for a look at the beginning";
  EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("fail")}), 2);
  EXPECT_THAT(Output(), HasSubstr("bad.csv:202: column item: \"two\" is not an integer"));
  EXPECT_THAT(Output(), HasSubstr("on_bad_record: skip"));
  ExpectNoDaemonLeft(Path("fail"), 4);

  EXPECT_EQ(
      Run({"train", job, "--set", "data.train.on_bad_record=skip", "--job_dir=" + Path("skip")}),
      0);
  const auto report = Report(Path("skip/report.json"));
  EXPECT_EQ(report["bad_records"]["count"], 1);
  EXPECT_THAT(report["bad_records"]["first"].get<std::string>(), HasSubstr("bad.csv:202"));
  EXPECT_EQ(report["samples"], 201);
}

// Nothing of the lease that holds the bad record has been trained when the run ends there.
TEST_F(BadDataTest, ARunThatABadRecordHasEndedIsContinuedWithoutIt) {
  // Behind the first leases, after whose evaluations there are checkpoints.
  WriteText("bad.csv", "user,item,rating\n" + Rows(50000) + "1,two,3\n" + Rows(9999));
  const std::string eval =
      "  eval: {format: csv, files: [data.csv], columns: [{name: user, kind: id}, {name: item, "
      "kind: id}, {name: rating, kind: number}]}\nmodel:";
  const std::string job =
      Job({{"data.csv", "bad.csv"},
           {"model:", eval},
           {"training: {",
            "checkpoint: {every: never, keep_best: {metric: rmse}}\ntraining: {eval_every: {steps: "
            "400}, "}});
  const std::vector<std::string> train = {"train",       job,      "--local",
                                          "--workers=1", "--ps=1", "--job_dir=" + Path("run")};
  const auto expect_end = [&] {
    EXPECT_EQ(Run(train), 2);
    EXPECT_THAT(Output(), HasSubstr("bad.csv:50002: column item: \"two\" is not an integer"));
    EXPECT_THAT(Output(), HasSubstr("A training run that ends here can be continued with skip; a "
                                    "mended file needs a new run, in another job_dir"));
    EXPECT_EQ(Report(Path("run/report.json"))["status"], "failed");
  };
  expect_end();
  expect_end();  // without the remedy it ends there again
  EXPECT_THAT(Output(), HasSubstr("CONTINUES from"));

  std::vector<std::string> skipping = train;
  skipping.push_back("--set=data.train.on_bad_record=skip");
  ASSERT_EQ(Run(skipping), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("CONTINUES from"));
  const auto report = Report(Path("run/report.json"));
  EXPECT_EQ(report["samples"], 59999) << "each good record once";
  EXPECT_EQ(report["bad_records"]["count"], 1);
  EXPECT_THAT(report["bad_records"]["first"].get<std::string>(), HasSubstr("bad.csv:50002"));
}

// `check`, and `train` before it starts anything, read the beginning of every file.
TEST_F(BadDataTest, EachFileThatIsNotWhatTheJobSays) {
  WriteText("columns.csv", "user,itm,rate\n1,2,3\n");
  WriteText("packed.csv.gz", "user,item,rating\n1,2,3\n");
  WriteText("empty.csv", "");
  WriteText("bad.csv", "user,item,rating\n1,two,3\n");
  WriteText("far.csv", "user,item,rating\n1,2,3\n11,2,3\n");
  const std::string job =
      Job({{"[data.csv]", "[far.csv, columns.csv, packed.csv.gz, empty.csv, data.csv, bad.csv]"},
           {"batch_size: 32", "batch_size: 0"}});
  EXPECT_EQ(Run({"check", job, "--ps=0"}), 2);
  const std::string checked = Output();
  EXPECT_THAT(checked, HasSubstr("8 problems; nothing was started:\n"));
  const std::string where = job + ":5:5: data.train.files: ";
  EXPECT_THAT(
      checked,
      HasSubstr(where +
                Path("columns.csv:1: the header has no column \"item\"; did you mean \"itm\"?")));
  EXPECT_THAT(
      checked,
      HasSubstr(where +
                Path("columns.csv:1: the header has no column \"rating\"; it names user, itm")));
  EXPECT_THAT(checked,
              HasSubstr(where + Path("packed.csv.gz does not begin as a compressed file does")));
  EXPECT_THAT(checked, HasSubstr(where + Path("empty.csv:1: the file is empty")));
  EXPECT_THAT(
      checked,
      HasSubstr(where + Path("bad.csv:2: column item: \"two\" is not an integer; mend the file")));
  EXPECT_THAT(checked, HasSubstr(where + Path("far.csv:3: column user: \"11\" is not below 10")));
  EXPECT_THAT(checked, HasSubstr("`training.batch_size` must be"));
  EXPECT_THAT(checked, HasSubstr("command line: a cluster needs"));

  EXPECT_EQ(Run({"train", job, "--ps=0", "--job_dir=" + Path("run")}), 2);
  EXPECT_EQ(Output(), checked);
  EXPECT_FALSE(FileExists(Path("run")));
}

TEST_F(BadDataTest, AClickLogOfTooFewFields) {
  WriteText("few.tsv", "1\t2\t3\n");
  WriteText("job.yaml",
            "name: clicks\n"
            "data:\n"
            "  train: {format: criteo_tsv, files: [few.tsv]}\n"
            "  eval: {format: criteo_tsv, files: [data.csv]}\n"
            "model: {dlrm: {embedding_dim: 4, hash_buckets: 10, bottom_mlp: [4], top_mlp: [1]}}\n"
            "optimizer: {sgd: {learning_rate: 0.1}}\n");
  EXPECT_EQ(Run({"check", Path("job.yaml")}), 2);
  EXPECT_THAT(Output(),
              HasSubstr("job.yaml:3:31: data.train.files: " +
                        Path("few.tsv:1: column integer 3: is not there; the line has 3 of 40")));
  EXPECT_THAT(Output(),
              HasSubstr("job.yaml:4:30: data.eval.files: " + Path("data.csv:1: column label:")));
}

// The workers of a cluster may have files that the coordinator's machine has not.
TEST_F(BadDataTest, FilesOfACluster) {
  const std::string job = Job({{"data.csv", "/only/the/nodes/have.csv"}});
  EXPECT_EQ(Run({"check", job}), 2);
  EXPECT_THAT(Output(), HasSubstr("there is no file /only/the/nodes/have.csv"));
  EXPECT_EQ(Run({"check", job, "--listen=127.0.0.1:0"}), 0) << Output();
  EXPECT_EQ(
      Run({"check", Job({{"data.csv", "/only/the/nodes/have-*.csv"}}), "--listen=127.0.0.1:0"}), 2);
  EXPECT_THAT(
      Output(),
      HasSubstr(
          "job.yaml:5:13: no file matches /only/the/nodes/have-*.csv; patterns are expanded here"));
  // What is to be seen is looked at all the same.
  WriteText("bad.csv", "user,item,rating\n1,two,3\n");
  EXPECT_EQ(Run({"check", Job({{"data.csv", "bad.csv"}}), "--listen=127.0.0.1:0"}), 2);
  EXPECT_THAT(Output(), HasSubstr("bad.csv:2: column item"));
}

TEST_F(BadDataTest, BadRecordsOfEvaluationCountAndMayBeNoText) {
  WriteText("bad.csv", "user,item,rating\n1,2,3\n1,caf\xE9,3\n1,2,3\n");
  const std::string eval =
      "  eval: {format: csv, files: [bad.csv], on_bad_record: skip, columns: [{name: user, kind: "
      "id}, {name: item, kind: "
      "id}, {name: rating, kind: number}]}\nmodel:";
  EXPECT_EQ(Run({"train", Job({{"model:", eval}}), "--job_dir=" + Path("run")}), 0);
  const auto report = Report(Path("run/report.json"));
  EXPECT_EQ(report["bad_records"]["count"], 1);
  EXPECT_THAT(report["bad_records"]["first"].get<std::string>(),
              HasSubstr("bad.csv:3: column item: \"caf?\""));
  EXPECT_EQ(report["eval"]["examples"], 2);
}

// Too far behind for a look at the beginning.
TEST_F(BadDataTest, DataOfWhichNoRecordIsGood) {
  WriteText("late.csv", "user,item,rating\n" + Rows(1000) + "1,two,3\n");
  const std::string late =
      "files: [late.csv]\n    on_bad_record: skip\n    records: {modulo: 1001, keep: [1000]}";
  const std::string job = Job({{"files: [data.csv]", late}});
  EXPECT_EQ(Run({"check", job}), 0);
  EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 2);
  EXPECT_THAT(Output(), HasSubstr("error: data.train: it has no good record: "));
  EXPECT_THAT(Output(), HasSubstr("late.csv:1002: column item"));
  EXPECT_EQ(Report(Path("run/report.json"))["status"], "failed");
  EXPECT_EQ(Run({"stats", job}), 2);
  EXPECT_THAT(Output(), HasSubstr("error: data.train: it has no good record; mend the files"));
}

TEST_F(BadDataTest, AColumnWithoutAValueIsNoted) {
  const std::string more = "rating, kind: number}\n      - {name: extra, kind: number}\n";
  const std::string job = Job({{"data.csv", "gaps.csv"}, {"rating, kind: number}\n", more}});
  WriteText("gaps.csv", "user,item,rating,extra\n1,2,3,\n1,2,3,\n");
  EXPECT_EQ(Run({"check", job}), 0);
  EXPECT_THAT(Output(), HasSubstr("data.train: column extra: it is missing in all of the first 2 "
                                  "records; is this the right field?"));
  WriteText("gaps.csv", "user,item,rating,extra\n1,2,,4\n1,2,,4\n");
  EXPECT_EQ(Run({"check", job}), 2);
  EXPECT_THAT(Output(), HasSubstr("column rating, the model's label: it is missing in all"));
}

// What a terminal would take as orders is shown, not sent.
TEST_F(BadDataTest, ControlCharactersOfDataAreEscaped) {
  WriteText("orders.csv", "user,item,rating\n" + Rows(200) +
                              "\x1b"
                              "c\x07,2,3\n");
  const std::string job = Job({{"data.csv", "orders.csv"}});
  const std::string shown = "orders.csv:202: column user: \"\\x1bc\\x07\"";
  const std::string skip = "--set=data.train.on_bad_record=skip";
  const std::string report = "--job_dir=" + Path("run");
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"train", job, "--job_dir=" + Path("fail")},
        {"train", job, skip, report},
        {"stats", job},
        {"stats", job, skip}}) {
    Run(args);
    EXPECT_THAT(Output(), HasSubstr(shown)) << args[0];
    EXPECT_THAT(Output(), Not(HasSubstr("\x1b"))) << args[0];
    EXPECT_THAT(Output(), Not(HasSubstr("\x07"))) << args[0];
  }
  EXPECT_THAT(ReadFile(Path("fail/logs/coordinator.log")).value_or(""), Not(HasSubstr("\x1b")));
  EXPECT_EQ(Report(Path("run/report.json"))["bad_records"]["count"], 1);
}

// The job bounds its ids by the model's numbers of users and items.
TEST_F(BadDataTest, IdsOutOfRange) {
  WriteText("far.csv", "user,item,rating\n" + Rows(200) + "11,2,3\n" + Rows(100) + "1,20,3\n");
  const std::string job = Job({{"data.csv", "far.csv"}});
  EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("fail")}), 2);
  EXPECT_THAT(Output(),
              HasSubstr("far.csv:202: column user: \"11\" is not below 10, the bound of its ids"));
  EXPECT_THAT(Output(),
              HasSubstr("mend the file, or leave such records out with on_bad_record: skip"));
  ExpectNoDaemonLeft(Path("fail"), 4);

  EXPECT_EQ(Run({"train", job, "--set=data.train.on_bad_record=skip", "--job_dir=" + Path("skip")}),
            0);
  const auto report = Report(Path("skip/report.json"));
  EXPECT_EQ(report["bad_records"]["count"], 2);
  EXPECT_THAT(report["bad_records"]["first"].get<std::string>(),
              HasSubstr("far.csv:202: column user: \"11\""));
  EXPECT_EQ(report["samples"], 300);
}

}  // namespace
}  // namespace mu
