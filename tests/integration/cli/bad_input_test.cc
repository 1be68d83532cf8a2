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

class BadInputTest : public testing::CliTest {};

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
  const std::string http =
      "1 problem; nothing was started:\ncommand line: --http: cannot listen on " + address +
      ": port " + address.substr(address.rfind(':') + 1) +
      " is in use; stop what listens there or choose another port (0: any)\n";
  EXPECT_EQ(Run({"train", Job(), "--http=" + address, "--job_dir=" + Path("new")}), 2);
  EXPECT_THAT(Output(), HasSubstr(http));
  EXPECT_FALSE(FileExists(Path("new")));
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130);
  EXPECT_EQ(Run({"status", address}), 4);
  // Nobody listens there any more, but both cannot.
  EXPECT_EQ(Run({"train", Job(), "--local", "--listen=" + address, "--http=" + address,
                 "--job_dir=" + Path("new")}),
            2);
  EXPECT_THAT(Output(), HasSubstr(http));
}

TEST_F(BadInputTest, AddressesOfStatus) {
  for (const char* address : {"127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "nowhere/run", ":7000"}) {
    EXPECT_EQ(Run({"status", address}), 2) << address;
    EXPECT_THAT(Output(), HasSubstr(absl::StrCat(address, " is no address; write HOST:PORT")));
  }
  MU_ASSERT_OK(MakeDirectories(Path("run/logs")));
  EXPECT_EQ(Run({"status", Path("run")}), 2);
  EXPECT_EQ(Output(), Path("run") + " is a folder; write HOST:PORT\n");
  WriteText("run/logs/coordinator.log", "");
  EXPECT_EQ(Run({"status", Path("run")}), 2);
  EXPECT_EQ(Output(), Path("run") + " is a folder; write HOST:PORT. The last line of " +
                          Path("run/logs/coordinator.log") +
                          " with \"listens at\" has the address\n");
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
