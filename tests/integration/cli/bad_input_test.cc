// What a user gets wrong, through the real program: the message, the exit code, and no process
// left.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_split.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BadInputTest : public testing::CliTest {
 protected:
  // Good ones of the small job.
  static std::string Rows(int count) {
    std::string rows;
    for (int i = 0; i < count; ++i) absl::StrAppend(&rows, i % 10, ",", i % 20, ",3\n");
    return rows;
  }
};

TEST_F(BadInputTest, AllProblemsOfAJobFileAtOnce) {
  const std::string job =
      Job({{"epochs", "epoch"}, {"users: 10", "users: 0"}, {"data.csv", "dota.csv"}});
  EXPECT_EQ(Run({"train", job, "--workers=0", "--report=" + Path("report.json")}), 2);
  EXPECT_THAT(Output(), HasSubstr("4 problems; nothing was started:\n"));
  EXPECT_THAT(Output(), HasSubstr(job + ":5:13: there is no file " + Path("dota.csv") +
                                  "; did you mean `data.csv`?\n"));
  EXPECT_THAT(Output(),
              HasSubstr(job + ":12:21: `model.matrix_factorization.users` must be at least 1"));
  EXPECT_THAT(
      Output(),
      HasSubstr(job +
                ":14:12: there is no key `epoch` under `training`; did you mean `epochs`?\n"));
  EXPECT_THAT(Output(), HasSubstr("command line: a cluster needs at least 1 worker"));
  EXPECT_EQ(Report(Path("report.json"))["status"], "failed");
}

TEST_F(BadInputTest, CheckFindsTheSameAndLeavesNothing) {
  EXPECT_EQ(Run({"check", Job(), "--job_dir=" + Path("new/run")}), 0);
  EXPECT_FALSE(FileExists(Path("new/run")));
  EXPECT_EQ(Run({"check", Job({{"kind: number", "kind: real"}})}), 2);
  EXPECT_THAT(
      Output(),
      HasSubstr(
          "job.yaml:9:30: `data.train.columns[2].kind` must be number, id, hash, label, class"));
}

// What follows from a mistake is not told as another one.
TEST_F(BadInputTest, AMistakeIsToldOnce) {
  const auto one = [&](const std::string& set, const std::string& problem) {
    EXPECT_EQ(Run({"check", Job(), "--set", set}), 2);
    EXPECT_THAT(Output(), HasSubstr("1 problem; nothing was started:\n--set " + problem)) << set;
  };
  for (const char* key :
       {"clip_by_value", "clip_by_norm", "clip_by_global_norm", "l1", "l2", "weight_decay"}) {
    one(absl::StrCat("training.", key, "=-1"),
        absl::StrCat("training.", key, ": `training.", key, "` must not be negative, not -1"));
  }
  one("training.batch_size=-1", "training.batch_size: `training.batch_size` must be from 1 to");
  one("training.batch_size=0", "training.batch_size: `training.batch_size` must be from 1 to");
  one("parameters=[{match: \"*\", learning_rate_factor: -2}]",
      "parameters: `parameters[0].learning_rate_factor` must be above 0");
  one("parameters=[{match: \"*\", optimizer: {sgd: {learning_rate: -2}}}]",
      "parameters: `parameters[0].optimizer.sgd.learning_rate` must be above 0");
  one("parameters=[{trainable: false}]", "parameters: the key `parameters[0].match` is missing");
  one("parameters=[{match: nothing, trainable: false}]",
      "parameters: parameters[0].match: `nothing` is the name of no variable or table");
  one("parameters=[{match: \"*\", trainable: false}]",
      "parameters: parameters[0].trainable: is false, and no variable or table of the model is "
      "left");
}

TEST_F(BadInputTest, AKeyOfTheCommandLineIsNamedOnce) {
  WriteText("wrong.csv", "1,2\n");
  EXPECT_EQ(Run({"check", Job(), "--set", "data.train.files=[wrong.csv]"}), 2);
  EXPECT_THAT(Output(), HasSubstr("\n--set data.train.files: " + Path("wrong.csv:1: the header")));
}

TEST_F(BadInputTest, AColumnThatDoesNotFitIsToldWhereTheModelNamesIt) {
  WriteText("job.yaml",
            "name: small\n"  // 1
            "data:\n"        // 2
            "  train: {format: csv, files: [data.csv], columns: [{name: user, kind: id}, {name: "
            "item, kind: number}, {name: rating, kind: label, positive: [\"0.5\"]}]}\n"  // 3
            "model:\n"                                                                   // 4
            "  logistic_regression:\n"                                                   // 5
            "    features:\n"                                                            // 6
            "      - {column: usr, kind: id, rows: 10}\n"                                // 7
            "      - {column: item, kind: id, rows: 20}\n"                               // 8
            "    label_column: rating\n"
            "optimizer: {sgd: {learning_rate: 0.1}}\n");
  EXPECT_EQ(Run({"check", Path("job.yaml")}), 2);
  EXPECT_THAT(Output(), HasSubstr("job.yaml:7:18: model.logistic_regression.features[0].column: "
                                  "data.train has no column \"usr\", an id; it has item, rating, "
                                  "user; did you mean \"user\"?\n"));
  EXPECT_THAT(Output(), HasSubstr("job.yaml:8:18: model.logistic_regression.features[1].column: "
                                  "column \"item\" of data.train is a number, the model reads an "
                                  "id; write for the column kind: id, "));
}

TEST_F(BadInputTest, AnIdForMissingFieldsHasARow) {
  EXPECT_EQ(Run({"check", Job({{"user, kind: id", "user, kind: id, missing_id: 9"}})}), 0);
  EXPECT_EQ(Run({"check", Job({{"user, kind: id", "user, kind: id, missing_id: 10"}})}), 2);
  EXPECT_THAT(Output(), HasSubstr("job.yaml:7:44: data.train.columns[0].missing_id: column "
                                  "\"user\" has `missing_id` 10, the model has rows for 10; write "
                                  "an id below 10"));
}

TEST_F(BadInputTest, CommandLine) {
  EXPECT_EQ(Run({"trian"}), 2);
  EXPECT_THAT(Output(), HasSubstr("did you mean \"train\"?"));
  EXPECT_EQ(Run({"train"}), 2);
  EXPECT_EQ(Run({"train", Job(), "--wrokers=2"}), 2);
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_EQ(Run({"train", Path("nothing.yaml")}), 2);
  EXPECT_THAT(Output(), HasSubstr("nothing.yaml: there is no such job file"));
  EXPECT_EQ(Run({"eval",
                 Job({{"model:",
                       "  eval: {format: csv, files: [data.csv], columns: [{name: user, kind: id}, "
                       "{name: "
                       "item, kind: id}, {name: rating, kind: number}]}\nmodel:"}}),
                 "--checkpoint=" + Path("none")}),
            2);
  EXPECT_THAT(Output(), HasSubstr("--checkpoint: " + Path("none") + " does not exist"));
}

TEST_F(BadInputTest, NumbersAndAddressesOfTheCommandLine) {
  for (const char* rows :
       {"abc", "-1", "0", "1.5", "99999999999999999999", "4000000000000000000", ""}) {
    EXPECT_EQ(Run({"make-data", "criteo", absl::StrCat("--rows=", rows), "--out=" + Path("made")}),
              2)
        << rows;
    EXPECT_THAT(Output(), HasSubstr("--rows")) << rows;
    if (*rows != 0) {
      EXPECT_THAT(Output(), HasSubstr(absl::StrCat("`", rows,
                                                   "` is no whole number from 1 to 100000000000")));
    }
  }
  EXPECT_FALSE(FileExists(Path("made")));
  EXPECT_EQ(Run({"make-data", "criteo", "--rows=10", "--files=11", "--out=" + Path("made")}), 2);
  EXPECT_THAT(Output(), HasSubstr("11 files for 10 rows"));
  EXPECT_EQ(Run({"train", Job(), "--workers=two"}), 2);
  EXPECT_THAT(Output(), HasSubstr("--workers: `two` is no whole number"));
  for (const char* address :
       {"nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", ":7000"}) {
    EXPECT_EQ(Run({"check", Job(), absl::StrCat("--listen=", address)}), 2) << address;
    EXPECT_THAT(Output(), HasSubstr(absl::StrCat(
                              "command line: --listen=", address,
                              " is no address; write HOST:PORT, for example 127.0.0.1:7000")));
  }
}

// Names are bytes to the system, but text in messages and reports.
TEST_F(BadInputTest, NamesThatAreNoText) {
  WriteText("caf\xE9.csv", "user,item,rating\n1,2,3\n");
  EXPECT_EQ(
      Run({"train", Job({{"[data.csv]", "[\"caf*.csv\"]"}}), "--report=" + Path("report.json")}),
      2);
  EXPECT_THAT(Output(), HasSubstr("job.yaml:5:13: the name of the file " + Path("caf?.csv") +
                                  " is not UTF-8; rename it"));
  EXPECT_EQ(Report(Path("report.json"))["status"], "failed");
  EXPECT_EQ(
      Run({"train", Job(), "--job_dir=" + Path("run-\xFF"), "--report=" + Path("report.json")}), 2);
  EXPECT_THAT(Output(), HasSubstr("--job_dir: " + Path("run-?") + " is not UTF-8"));
  EXPECT_THAT(Report(Path("report.json"))["error"].get<std::string>(), HasSubstr("is not UTF-8"));
}

TEST_F(BadInputTest, DamagedCheckpoint) {
  const std::string job =
      Job({{"model:",
            "  eval: {format: csv, files: [data.csv], columns: [{name: user, kind: id}, {name: "
            "item, kind: id}, {name: rating, kind: number}]}\nmodel:"}});
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run"), "--ps=1", "--workers=1"}), 0)
      << Output();
  const std::string checkpoint = Report(Path("run/report.json"))["checkpoint"];
  const std::string shard = checkpoint + "/ps-0.safetensors",
                    manifest = checkpoint + "/manifest.json";
  const std::string good_shard = ReadFile(shard).value(),
                    good_manifest = ReadFile(manifest).value();
  const auto expect_refused = [&](const std::string& says) {
    for (const char* command : {"eval", "predict", "train"}) {
      EXPECT_EQ(Run({command, job, "--checkpoint=" + checkpoint, "--job_dir=" + Path("again"),
                     "--ps=1", "--workers=1"}),
                2)
          << Output();
      EXPECT_THAT(Output(), HasSubstr(says)) << command;
      EXPECT_THAT(Output(), HasSubstr("use another checkpoint")) << command;
    }
  };
  MU_ASSERT_OK(WriteFileAtomic(shard, good_shard.substr(0, good_shard.size() / 2)));
  expect_refused("--checkpoint: " + shard + " has ");
  MU_ASSERT_OK(RemoveFile(shard));
  expect_refused("--checkpoint: " + shard + " is missing");
  std::string flipped = good_shard;
  flipped[flipped.size() / 2] ^= 1;
  MU_ASSERT_OK(WriteFileAtomic(shard, flipped));
  expect_refused(shard);
  MU_ASSERT_OK(WriteFileAtomic(shard, good_shard));
  MU_ASSERT_OK(WriteFileAtomic(manifest, good_manifest.substr(0, good_manifest.size() / 2)));
  expect_refused("--checkpoint: " + manifest + " is damaged");
  MU_ASSERT_OK(WriteFileAtomic(manifest, good_manifest));
  EXPECT_EQ(Run({"eval", job, "--checkpoint=" + checkpoint, "--job_dir=" + Path("good")}), 0)
      << Output();
}

TEST_F(BadInputTest, JobDirectoryThatCannotBeMade) {
  const std::string what = ": cannot make directory " + Path("data.csv") +
                           ": Not a directory; name a folder that can be made and written to\n";
  const std::string one = "1 problem; nothing was started:\n";
  const std::string job = Job({{"name: small\n", "name: small\njob_dir: data.csv/run\n"}});
  EXPECT_EQ(Run({"train", job}), 2);
  EXPECT_EQ(Output(), one + job + ":2:10" + what);
  EXPECT_EQ(Run({"check", job}), 2);
  EXPECT_EQ(Output(), one + job + ":2:10" + what);
  EXPECT_EQ(Run({"train", job, "--set=job_dir=data.csv/run"}), 2);
  EXPECT_EQ(Output(), one + "--set job_dir" + what);
  EXPECT_EQ(Run({"train", Job(), "--job_dir=" + Path("data.csv/run")}), 2);
  EXPECT_EQ(Output(), one + "--job_dir" + what);
  EXPECT_EQ(Run({"check", job, "--job_dir=" + Path("good")}), 0) << Output();
}

TEST_F(BadInputTest, BadDataLine) {
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

// `check`, and `train` before it starts anything, read the beginning of every file.
TEST_F(BadInputTest, EachFileThatIsNotWhatTheJobSays) {
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

TEST_F(BadInputTest, AClickLogOfTooFewFields) {
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
TEST_F(BadInputTest, FilesOfACluster) {
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

TEST_F(BadInputTest, BadRecordsOfEvaluationCountAndMayBeNoText) {
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

// What a terminal would take as orders is shown, not sent.
TEST_F(BadInputTest, ControlCharactersOfDataAreEscaped) {
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
TEST_F(BadInputTest, IdsOutOfRange) {
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

TEST_F(BadInputTest, LossThatIsNotANumberNamesStepAndOp) {
  EXPECT_EQ(Run({"train", Job({{"0.1", "1e30"}}), "--job_dir=" + Path("run")}), 2);
  EXPECT_THAT(Output(), HasSubstr("step "));
  EXPECT_THAT(Output(), HasSubstr("op \""));
  EXPECT_THAT(Output(), HasSubstr("learning rate"));
  const auto report = Report(Path("run/report.json"));
  EXPECT_EQ(report["status"], "failed");
  EXPECT_THAT(Output(), HasSubstr(report["error"].get<std::string>()));
  ExpectNoDaemonLeft(Path("run"), 4);
}

TEST_F(BadInputTest, PortInUse) {
  auto training = StartTraining({"--listen=127.0.0.1:0", "--local"});
  const std::string address = ListenAddress();
  EXPECT_EQ(Run({"status", address}), 0);
  EXPECT_THAT(Output(), HasSubstr("job small, epoch 1"));
  EXPECT_THAT(Output(), HasSubstr("worker 1"));
  EXPECT_EQ(Run({"train", Job(), "--local", "--listen=" + address}), 2);
  EXPECT_THAT(Output(), HasSubstr("--listen: "));
  EXPECT_THAT(Output(), HasSubstr(address));
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130);
  EXPECT_EQ(Run({"status", address}), 4);
}

TEST_F(BadInputTest, DaemonsThatAreNotThere) {
  EXPECT_EQ(Run({"train", Job(), "--binary_dir=" + Path("nowhere")}), 2);
  EXPECT_THAT(Output(), HasSubstr("there is no program " + Path("nowhere") + "/worker"));
  EXPECT_THAT(Output(), HasSubstr("there is no program " + Path("nowhere") + "/psserver"));
}

TEST_F(BadInputTest, DaemonThatCannotStart) {
  MU_ASSERT_OK(MakeDirectories(Path("bin")));
  WriteText("bin/worker", "#!/bin/sh\necho the disk of the daemon is broken\nexit 7\n");
  ASSERT_EQ(::chmod(Path("bin/worker").c_str(), 0755), 0);
  ASSERT_EQ(::symlink((std::string(MUSTER_BINARY_DIR) + "/psserver").c_str(),
                      Path("bin/psserver").c_str()),
            0);
  EXPECT_EQ(Run({"train", Job(), "--binary_dir=" + Path("bin"), "--job_dir=" + Path("run")}), 4);
  EXPECT_THAT(Output(), HasSubstr("worker"));
  EXPECT_THAT(Output(), HasSubstr("exit code 7"));
  EXPECT_THAT(Output(), HasSubstr("the disk of the daemon is broken"));
  for (const pid_t pid : Daemons(Path("run"))) {
    EXPECT_TRUE(testing::Eventually([&] { return !testing::ProcessRuns(pid); }));
  }
}

// Whoever collects lines of JSON can read all that comes on standard error.
TEST_F(BadInputTest, IsToldInJsonWhereTheLogIs) {
  const std::vector<std::string> args = {
      "train",     Path("job.yaml"),   "--workers=1", "--ps=1", "--job_dir=" + Path("run"),
      "--verbose", "--log_format=json"};
  Job();
  ASSERT_EQ(Run(args), 0) << Output();
  EXPECT_EQ(Run(args), 0) << Output();  // with an announcement: it is done
  EXPECT_THAT(Output(), HasSubstr("nothing is trained"));
  EXPECT_THAT(Output(), Not(HasSubstr("note: ")));
  const auto expect_error = [&](const std::string& text) {
    EXPECT_EQ(Run(args), 2);
    EXPECT_THAT(Output(), Not(HasSubstr("error: ")));
    int errors = 0;
    for (const absl::string_view line : absl::StrSplit(Output(), '\n', absl::SkipEmpty())) {
      const auto json =
          nlohmann::json::parse(std::string(line), nullptr, /*allow_exceptions=*/false);
      if (!json.is_object() || json["level"] != "error") continue;
      EXPECT_THAT(json["message"].get<std::string>(), HasSubstr(text));
      ++errors;
    }
    EXPECT_EQ(errors, 1) << Output();
  };
  Job({{"learning_rate: 0.1", "learning_rate: 0.2"}});
  expect_error("holds another job");
  Job({{"learning_rate: 0.1", "learning_rat: 0.1"}});
  expect_error("1 problem; nothing was started:\n");
  EXPECT_THAT(Output(), Not(HasSubstr("\n1 problem")));
}

}  // namespace
}  // namespace mu
