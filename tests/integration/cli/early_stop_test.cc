// A stop that comes while the job is still being read; and signals to process 1, which the program
// is in a container: the kernel keeps those from it that nobody handles.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "common/env/unique_fd.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

class EarlyStopTest : public testing::CliTest {
 protected:
  // Of an earlier run, which `train` reads before it starts anything.
  std::vector<std::string> TrainFromPipe() {
    EXPECT_EQ(::mkfifo(Path("placement.json").c_str(), 0600), 0);
    return {"train", Job(), "--job_dir=" + Path("run"),
            "--placement=load=" + Path("placement.json")};
  }
  // The pipe's other end, as soon as a process reads it. That waits until the end is closed.
  UniqueFd WaitForReader(const std::string& pipe) {
    UniqueFd end;
    EXPECT_TRUE(testing::Eventually([&] {
      end.Reset(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      return end.valid();
    })) << Output();
    return end;
  }
  // `coordinator` is the process to be stopped, `training` the one that was started. No daemon is
  // started any more.
  void StopWhileItReads(Subprocess* training, pid_t coordinator, UniqueFd end) {
    EXPECT_EQ(::kill(coordinator, SIGUSR1), 0);  // a checkpoint: of nothing
    EXPECT_EQ(::kill(coordinator, SIGTERM), 0);
    EXPECT_TRUE(testing::Eventually([&] {
      return Output().find("\nstopping cleanly; again to stop at once\n") != std::string::npos ||
             training->TryWait().has_value();
    })) << Output();
    ASSERT_EQ(training->TryWait(), std::nullopt) << "it did not end its reading\n" << Output();
    const std::string report =
        R"({"variables": [{"name": "user", "read_bytes": 1, "update_bytes": 1}]})";
    ASSERT_EQ(::write(end.get(), report.data(), report.size()),
              static_cast<ssize_t>(report.size()));
    end.Reset();
    EXPECT_EQ(ExitOf(training), 143) << Output();
    const auto stopped = Report(Path("run/report.json"));
    EXPECT_EQ(stopped["status"], "stopped");
    EXPECT_EQ(stopped["error"], "");
    ExpectNoDaemonLeft(Path("run"), 0);
  }
};

TEST_F(EarlyStopTest, SigtermWhileTheJobIsRead) {
  const auto training = Start(TrainFromPipe());
  UniqueFd end = WaitForReader(Path("placement.json"));
  ASSERT_TRUE(end.valid());
  StopWhileItReads(training.get(), training->pid(), std::move(end));
}

// Nobody would go on with the job.
TEST_F(EarlyStopTest, WhoIsStoppedBeforeItBeginsTakesNothingOver) {
  const auto first = StartTraining({"--workers=1", "--ps=1"});
  WaitForSteps();
  ASSERT_EQ(::mkfifo(Path("placement.json").c_str(), 0600), 0);
  const auto second =
      Start({"train", EndlessJob(), "--local", "--workers=1", "--ps=1", "--job_dir=" + Path("run"),
             "--take_over", "--placement=load=" + Path("placement.json")});
  UniqueFd end = WaitForReader(Path("placement.json"));
  ASSERT_TRUE(end.valid());
  MU_ASSERT_OK(second->Kill(SIGTERM));
  EXPECT_TRUE(testing::Eventually([&] {
    return Output().find("\nstopping cleanly; again to stop at once\n") != std::string::npos;
  })) << Output();
  const std::string report =
      R"({"variables": [{"name": "user", "read_bytes": 1, "update_bytes": 1}]})";
  ASSERT_EQ(::write(end.get(), report.data(), report.size()), static_cast<ssize_t>(report.size()));
  end.Reset();
  EXPECT_EQ(ExitOf(second.get()), 143) << Output();
  EXPECT_FALSE(FileExists(Path("run/report.json"))) << "it is the first one's";
  EXPECT_FALSE(FileExists(Path("run/epochs/2"))) << "it would end the first one";
  MU_ASSERT_OK(first->Kill(SIGINT));
  EXPECT_EQ(ExitOf(first.get()), 130) << Output();
  EXPECT_EQ(Report(Path("run/report.json"))["status"], "stopped");
}

class FirstProcessTest : public EarlyStopTest {
 protected:
  void SetUp() override {
    EarlyStopTest::SetUp();
    if (::geteuid() != 0) GTEST_SKIP() << "namespaces of processes need root";
    if (std::system("unshare --pid --fork --kill-child true") != 0)
      GTEST_SKIP() << "there are no namespaces of processes here";
    within_ = {"unshare", "--pid", "--fork", "--kill-child"};
  }
  // What unshare has started.
  pid_t ChildOf(pid_t unshare) {
    const auto children = ReadFile(absl::StrCat("/proc/", unshare, "/task/", unshare, "/children"));
    const pid_t child = children.ok() ? std::atoi(children->c_str()) : 0;
    EXPECT_GT(child, 0) << children.status();
    return child;
  }
};

TEST_F(FirstProcessTest, SigtermWhileTheJobIsRead) {
  const auto training = Start(TrainFromPipe());
  UniqueFd end = WaitForReader(Path("placement.json"));
  ASSERT_TRUE(end.valid());
  const pid_t coordinator = ChildOf(training->pid());
  ASSERT_GT(coordinator, 0);
  StopWhileItReads(training.get(), coordinator, std::move(end));
}

// A command that has nothing to save ends at once.
TEST_F(FirstProcessTest, SigtermEndsOtherCommandsAtOnce) {
  MU_ASSERT_OK(MakeDirectories(Path("ckpt-00000001")));
  const std::string pipe = Path("ckpt-00000001/manifest.json");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto listing = Start({"checkpoints", "list", Path("ckpt-00000001")});
  UniqueFd end = WaitForReader(pipe);
  ASSERT_TRUE(end.valid());
  const pid_t coordinator = ChildOf(listing->pid());
  ASSERT_GT(coordinator, 0);
  EXPECT_EQ(::kill(coordinator, SIGTERM), 0);
  const auto exit = listing->WaitFor(testing::kPatience);
  ASSERT_TRUE(exit.has_value()) << "it still reads";
  EXPECT_EQ(exit->code, 143);
}

}  // namespace
}  // namespace mu
