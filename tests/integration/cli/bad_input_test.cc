// What a user gets wrong, through the real program: the message, the exit code, and no process
// left.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using BadInputTest = testing::CliTest;

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
      HasSubstr("job.yaml:9:30: `data.train.columns[2].kind` must be number, id, hash or label"));
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

TEST_F(BadInputTest, JobDirectoryThatCannotBeMade) {
  EXPECT_EQ(Run({"train", Job(), "--job_dir=" + Path("data.csv/run")}), 2);
  EXPECT_THAT(Output(), HasSubstr("job_dir"));
}

TEST_F(BadInputTest, BadDataLine) {
  WriteText("bad.csv", "user,item,rating\n1,2,3\n1,two,3\n1,2,3\n");
  const std::string job = Job({{"data.csv", "bad.csv"}});
  EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("fail")}), 2);
  EXPECT_THAT(Output(), HasSubstr("bad.csv:3: column item: \"two\" is not an integer"));
  EXPECT_THAT(Output(), HasSubstr("on_bad_record: skip"));
  ExpectNoDaemonLeft(Path("fail"), 4);

  EXPECT_EQ(
      Run({"train", job, "--set", "data.train.on_bad_record=skip", "--job_dir=" + Path("skip")}),
      0);
  const auto report = Report(Path("skip/report.json"));
  EXPECT_EQ(report["bad_records"]["count"], 1);
  EXPECT_THAT(report["bad_records"]["first"].get<std::string>(), HasSubstr("bad.csv:3"));
  EXPECT_EQ(report["samples"], 2);
}

TEST_F(BadInputTest, BadRecordsOfEvaluationCountAndMayBeNoText) {
  WriteText("bad.csv", "user,item,rating\n1,2,3\n1,caf\xE9,3\n1,2,3\n");
  const std::string eval =
      "  eval: {format: csv, files: [bad.csv], on_bad_record: skip, columns: [{name: user, kind: id}, {name: item, kind: "
      "id}, {name: rating, kind: number}]}\nmodel:";
  EXPECT_EQ(Run({"train", Job({{"model:", eval}}), "--job_dir=" + Path("run")}), 0);
  const auto report = Report(Path("run/report.json"));
  EXPECT_EQ(report["bad_records"]["count"], 1);
  EXPECT_THAT(report["bad_records"]["first"].get<std::string>(), HasSubstr("bad.csv:3: column item: \"caf?\""));
  EXPECT_EQ(report["eval"]["examples"], 2);
}

TEST_F(BadInputTest, MissingColumn) {
  EXPECT_EQ(Run({"train", Job({{"name: rating, kind", "name: rating, field: ratin, kind"}}),
                 "--job_dir=" + Path("run")}),
            2);
  EXPECT_THAT(Output(), HasSubstr("did you mean \"rating\"?"));
  ExpectNoDaemonLeft(Path("run"), 4);
}

TEST_F(BadInputTest, IdsOutOfRange) {
  WriteText("far.csv", "user,item,rating\n1,2,3\n11,2,3\n");
  EXPECT_EQ(Run({"train", Job({{"data.csv", "far.csv"}}), "--job_dir=" + Path("run")}), 2);
  EXPECT_THAT(Output(), HasSubstr("id 11 is outside of table"));
  EXPECT_THAT(Output(), HasSubstr("0 to 9"));
  ExpectNoDaemonLeft(Path("run"), 4);
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

}  // namespace
}  // namespace mu
