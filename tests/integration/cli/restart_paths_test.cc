// Runs that are continued by commands which write the same paths in another way, and runs that were
// to be trained again.
#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/integration/cli/restart.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::RestartTest;

class RestartPathsTest : public RestartTest {
 protected:
  // Two servers, one worker; killed after its second checkpoint.
  void BeginAndKill(std::vector<std::string> args) {
    auto first = Start(std::move(args));
    WaitForCheckpoints(Path("run"), 2);
    MU_ASSERT_OK(first->Kill(SIGKILL));
    ExitOf(first.get());
  }
  std::vector<std::string> Command(const std::string& job, const std::string& job_dir,
                                   std::vector<std::string> more = {}) {
    std::vector<std::string> args = {"train",       job,      "--local",
                                     "--workers=1", "--ps=2", "--job_dir=" + job_dir};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  // The run in "run", whole.
  void ExpectContinued() {
    EXPECT_THAT(Output(), HasSubstr("CONTINUES from "));
    EXPECT_THAT(Output(), Not(HasSubstr("a new run BEGINS")));
    ExpectWhole(Report(Path("run/report.json")));
  }
};

TEST_F(RestartPathsTest, TheJobFileAndTheFolderAreWrittenInAnotherWay) {
  const std::string job = LongJob();
  BeginAndKill(Command(job, Path("run")));
  if (HasFatalFailure()) return;
  MU_ASSERT_OK(MakeDirectories(Path("sub")));
  ASSERT_EQ(Run(Command(Path("./sub/../") + BaseName(job), Path("run") + "//")), 0) << Output();
  ExpectContinued();
}

TEST_F(RestartPathsTest, TheOwnCheckpointIsNamedInAnotherWay) {
  const std::string job = LongJob();
  BeginAndKill(Command(job, Path("run")));
  if (HasFatalFailure()) return;
  ASSERT_EQ(symlink(Path("run/checkpoints").c_str(), Path("link").c_str()), 0);
  ASSERT_EQ(Run(Command(job, Path("run/"), {"--checkpoint=" + Path("link/")})), 0) << Output();
  ExpectContinued();
}

TEST_F(RestartPathsTest, TheCheckpointThatItBeganWithIsNamedInAnotherWay) {
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("other")}), 0) << Output();
  const std::string job = LongJob();
  BeginAndKill(Command(job, Path("run"), {"--checkpoint=" + Path("other")}));
  if (HasFatalFailure()) return;
  ASSERT_EQ(symlink(Path("other").c_str(), Path("link").c_str()), 0);
  ASSERT_EQ(Run(Command(job, Path("run"), {"--checkpoint=" + Path("link/./checkpoints/")})), 0)
      << Output();
  ExpectContinued();
}

// No daemon comes, so the new run does not begin.
TEST_F(RestartPathsTest, WhatIsDoneStaysWhereTheNextRunDoesNotBegin) {
  const std::string job = Job();
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 0) << Output();
  const std::string report = ReadFile(Path("run/report.json")).value_or("");
  EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("run"), "--train_again", "--listen=127.0.0.1:0",
                 "--insecure", "--start_timeout=1", "--report=" + Path("again.json")}),
            4)
      << Output();
  EXPECT_EQ(ReadFile(Path("run/report.json")).value_or(""), report);
  EXPECT_EQ(Report(Path("again.json"))["status"], "failed");
  const size_t command = Output().rfind("to continue: ");
  ASSERT_NE(command, std::string::npos) << Output();
  EXPECT_THAT(Output().substr(command), HasSubstr(" --train_again "));
  EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("run"), "--train_again"}), 0) << Output();
  EXPECT_THAT(Output(), Not(HasSubstr("nothing is trained")));
}

TEST_F(RestartPathsTest, TrainAgainGoesOnWithWhatIsNotDone) {
  const std::string job = LongJob();
  BeginAndKill(Command(job, Path("run")));
  if (HasFatalFailure()) return;
  ASSERT_EQ(Run(Command(job, Path("run"), {"--train_again"})), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("--train_again trains again what is done"));
  ExpectContinued();
}

}  // namespace
}  // namespace mu
