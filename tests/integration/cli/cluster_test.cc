// A cluster whose daemons somebody else starts, and the examples on all that they run on.
#include <gmock/gmock.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ClusterTest : public testing::CliTest {
 protected:
  std::unique_ptr<Subprocess> StartProgram(const std::string& name, std::vector<std::string> args) {
    return StartAs(name, std::string(MUSTER_BINARY_DIR) + "/" + name, std::move(args));
  }
  std::unique_ptr<Subprocess> StartAs(const std::string& name, const std::string& path,
                                      std::vector<std::string> args) {
    SubprocessOptions options;
    options.path = path;
    options.args = std::move(args);
    options.output_file = Path(name + ".out");
    auto process = Subprocess::Start(testing::EndsWithThisTest(std::move(options)));
    EXPECT_THAT(process, testing::IsOk());
    return process.ok() ? *std::move(process) : nullptr;
  }
  std::string OutputOf(const std::string& name) const {
    return ReadFile(Path(name + ".out")).value_or("");
  }
  // The port is free when it is asked for; daemons try again until somebody listens there.
  std::vector<std::unique_ptr<Subprocess>> StartDaemons(const std::string& address, int workers,
                                                        int ps) {
    std::vector<std::unique_ptr<Subprocess>> daemons;
    for (int i = 0; i < ps; ++i)
      daemons.push_back(StartProgram("psserver", {"--coordinator=" + address}));
    for (int i = 0; i < workers; ++i) {
      daemons.push_back(
          StartProgram("worker", {"--coordinator=" + address, "--cache_dir=" + Path("cache")}));
    }
    return daemons;
  }
  std::string FreeAddress();
};

// Bound and released: nobody else on this machine is given it soon.
std::string ClusterTest::FreeAddress() {
  auto training = StartTraining({"--local", "--listen=127.0.0.1:0", "--workers=1", "--ps=1"});
  const std::string address = ListenAddress();
  EXPECT_THAT(training->Kill(SIGKILL), testing::IsOk());
  ExitOf(training.get());
  ExpectNoDaemonLeft(Path("run"), 2);
  return address;
}

TEST_F(ClusterTest, DataThatOnlyTheWorkersSee) {
  if (::geteuid() != 0) GTEST_SKIP() << "to show a folder to one process only takes root";
  if (ExitOf(StartAs("probe", "unshare", {"-m", "true"}).get()) != 0)
    GTEST_SKIP() << "no mount namespaces here: " << OutputOf("probe");
  const std::string address = FreeAddress();
  MU_ASSERT_OK(MakeDirectories(Path("here")));
  MU_ASSERT_OK(MakeDirectories(Path("nodes")));
  MU_ASSERT_OK(RenameFile(Path("data.csv"), Path("nodes/data.csv")));
  auto training = Start({"train", Job({{"data.csv", "here/data.csv"}}), "--listen=" + address,
                         "--workers=1", "--ps=1", "--job_dir=" + Path("cluster")});
  const auto server = StartProgram("psserver", {"--coordinator=" + address});
  // In a mount namespace of its own, `here` is `nodes`.
  const auto worker =
      StartAs("worker", "unshare",
              {"-m", "sh", "-c", "mount --bind \"$1\" \"$2\" && exec \"$0\" \"$3\" \"$4\"",
               absl::StrCat(MUSTER_BINARY_DIR, "/worker"), Path("nodes"), Path("here"),
               "--coordinator=" + address, "--cache_dir=" + Path("cache")});
  EXPECT_EQ(ExitOf(training.get()), 0) << Output() << OutputOf("worker");
  EXPECT_FALSE(FileExists(Path("here/data.csv")));
  EXPECT_EQ(Report(Path("cluster/report.json"))["samples"], 2000);
}

TEST_F(ClusterTest, DataThatOneOfTwoWorkersSees) {
  const std::string address = FreeAddress();
  MU_ASSERT_OK(MakeDirectories(Path("node")));
  MU_ASSERT_OK(RenameFile(Path("data.csv"), Path("node/data.csv")));
  // A path that leads to the data from one process only.
  auto training =
      // So many epochs that both are given something.
      Start({"train",
             Job({{"data.csv", "/proc/self/cwd/data.csv"},
                  {"epochs: 1, batch_size: 32", "epochs: 40, batch_size: 8"}}),
             "--listen=" + address, "--workers=2", "--ps=1", "--job_dir=" + Path("cluster")});
  auto daemons = StartDaemons(address, 1, 1);
  const auto worker = StartAs(
      "sees", "sh",
      {"-c", "cd \"$1\" && exec \"$0\" \"$2\" \"$3\"", absl::StrCat(MUSTER_BINARY_DIR, "/worker"),
       Path("node"), "--coordinator=" + address, "--cache_dir=" + Path("cache")});
  EXPECT_EQ(ExitOf(training.get()), 0) << Output() << OutputOf("sees");
  const auto report = Report(Path("cluster/report.json"));
  EXPECT_EQ(report["samples"], 40 * 2000);
  ASSERT_EQ(report["failures"].size(), 1u);
  EXPECT_EQ(report["failures"][0]["kind"], "set_aside");
  EXPECT_THAT(report["failures"][0]["message"].get<std::string>(), HasSubstr("data.csv"));
}

TEST_F(ClusterTest, AFileThatNoMachineHas) {
  const std::string address = FreeAddress();
  auto training = Start({"train", Job({{"data.csv", "nowhere.csv"}}), "--listen=" + address,
                         "--workers=1", "--ps=1", "--job_dir=" + Path("cluster")});
  const auto daemons = StartDaemons(address, 1, 1);
  EXPECT_EQ(ExitOf(training.get()), 2) << Output();
  EXPECT_THAT(Output(), HasSubstr(Path("nowhere.csv")));
}

TEST_F(ClusterTest, TrainsOnDaemonsThatRegister) {
  const std::string address = FreeAddress();
  auto training = Start({"train", Job(), "--listen=" + address, "--workers=2", "--ps=2",
                         "--job_dir=" + Path("cluster")});
  const auto daemons = StartDaemons(address, 2, 2);
  EXPECT_EQ(ExitOf(training.get()), 0) << Output();
  const auto report = Report(Path("cluster/report.json"));
  EXPECT_EQ(report["samples"], 2000);
  EXPECT_EQ(report["failures"].size(), 0u);
}

TEST_F(ClusterTest, DaemonsThatDoNotComeAreToldByNumber) {
  EXPECT_EQ(Run({"train", Job(), "--listen=127.0.0.1:0", "--start_timeout=0.3",
                 "--job_dir=" + Path("cluster")}),
            4);
  const std::string told = "\nerror: 0 of 2 parameter servers have registered at ";
  EXPECT_THAT(Output(), ContainsRegex(told + "(127.0.0.1:[0-9]+) within 300ms; "
                                             "start them with --coordinator=127.0.0.1:[0-9]+\n"));
}

TEST_F(ClusterTest, WorkersThatDoNotComeAreToldByNumber) {
  const std::string address = FreeAddress();
  auto training = Start({"train", Job(), "--listen=" + address, "--workers=3", "--ps=1",
                         "--start_timeout=8", "--job_dir=" + Path("cluster")});
  const auto daemons = StartDaemons(address, 1, 1);
  EXPECT_EQ(ExitOf(training.get()), 4);
  EXPECT_THAT(Output(), HasSubstr("\nerror: 1 of 3 workers have registered at " + address +
                                  " within 8s; start them with --coordinator=" + address + "\n"));
}

TEST_F(ClusterTest, ExamplesRunInProcessAndLocally) {
  ASSERT_EQ(Run({"make-data", "criteo", "--rows=60000", "--out=" + Path("criteo")}), 0) << Output();
  for (const char* where : {"in_process", "local"}) {
    auto first = StartProgram("first_program", {where, Path("criteo/train-*.tsv.gz")});
    EXPECT_EQ(ExitOf(first.get()), 0) << OutputOf("first_program");
    EXPECT_THAT(OutputOf("first_program"), HasSubstr("200 steps, the last ten's mean loss 0."));
    auto all = StartProgram("all_calls", {where});
    EXPECT_EQ(ExitOf(all.get()), 0) << OutputOf("all_calls");
  }
}

TEST_F(ClusterTest, TheFirstProgramSaysHowItIsCalledAndWhatIsWrongWithItsFile) {
  auto called = StartProgram("first_program", {});
  EXPECT_EQ(ExitOf(called.get()), 2);
  EXPECT_THAT(OutputOf("first_program"), StartsWith("usage: first_program in_process|local|"));
  MU_ASSERT_OK(RemoveFile(Path("first_program.out")));
  auto missing = StartProgram("first_program", {"in_process", Path("none.tsv.gz")});
  EXPECT_EQ(ExitOf(missing.get()), 1);
  const std::string output = OutputOf("first_program");
  EXPECT_THAT(output, HasSubstr("cannot look at " + Path("none.tsv.gz") +
                                ": No such file or directory; check the path\n"));
  const std::vector<std::string> around = absl::StrSplit(output, " is set aside, ");
  EXPECT_EQ(around.size(), 2u) << "one worker, once: the other has found the input wrong\n"
                               << output;
}

TEST_F(ClusterTest, ExamplesRunOnACluster) {
  const std::string address = FreeAddress();
  ASSERT_EQ(Run({"make-data", "criteo", "--rows=60000", "--out=" + Path("criteo")}), 0) << Output();
  for (const auto& [program, last] :
       {std::pair("first_program", "200 steps, the last ten's mean loss 0."),
        std::pair("all_calls", ", done\n")}) {
    auto run = StartProgram(program, {address, Path("criteo/train-*.tsv.gz")});
    const auto daemons = StartDaemons(address, 2, 2);
    EXPECT_EQ(ExitOf(run.get()), 0) << OutputOf(program);
    EXPECT_THAT(OutputOf(program), HasSubstr(last));
  }
}

}  // namespace
}  // namespace mu
