// Two runs of `coordinator train` at a time in one job_dir.
#include <gmock/gmock.h>

#include "tests/integration/cli/cli_run.h"
#include "tests/testing/suspend.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class JobLockTest : public testing::CliTest {
 protected:
  std::vector<std::string> Train(std::vector<std::string> more = {}) {
    std::vector<std::string> args = {"train",       EndlessJob(), "--local",
                                     "--workers=1", "--ps=1",     "--job_dir=" + Path("run")};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  // Ended by Ctrl-C it is whole: it has saved, and nothing had happened to it.
  void ExpectEndsUndisturbed(Subprocess* training) {
    MU_ASSERT_OK(training->Kill(SIGINT));
    EXPECT_EQ(ExitOf(training), 130) << Output();
    const auto report = Report(Path("run/report.json"));
    EXPECT_EQ(report["status"], "stopped");
    EXPECT_THAT(report["failures"], SizeIs(0));
    EXPECT_TRUE(FileExists(JoinPath(report["checkpoint"].get<std::string>(), "manifest.json")));
  }
  std::string RefusalBy(const Subprocess& holder) {
    return absl::StrCat("a coordinator (process ", holder.pid(), " on ");
  }
};

TEST_F(JobLockTest, ASecondRunIsRefusedAndTheFirstGoesOn) {
  auto first = StartTraining({"--workers=1", "--ps=1"});
  EXPECT_EQ(Run(Train({"--report=" + Path("refused.json")})), 2);
  EXPECT_THAT(Output(), AllOf(HasSubstr(RefusalBy(*first)),
                              HasSubstr(") is training this job in " + Path("run")),
                              HasSubstr("--take_over replaces it")));
  EXPECT_EQ(Report(Path("refused.json"))["status"], "failed");
  EXPECT_FALSE(FileExists(Path("run/report.json"))) << "it is the first one's";
  EXPECT_FALSE(FileExists(Path("run/epochs/2"))) << "it would end the first one";
  WaitForSteps();
  ExpectEndsUndisturbed(first.get());
}

// It has no checkpoint yet, so nothing but the lock speaks for it.
TEST_F(JobLockTest, ARunOfAnotherJobIsRefusedAlthoughItWouldTakeOver) {
  auto first = StartTraining({"--workers=1", "--ps=1"});
  EXPECT_EQ(Run({"train", Job(), "--local", "--workers=1", "--ps=1", "--job_dir=" + Path("run"),
                 "--take_over"}),
            2);
  EXPECT_THAT(Output(), HasSubstr("is training another job in " + Path("run")));
  WaitForSteps();
  ExpectEndsUndisturbed(first.get());
}

TEST_F(JobLockTest, ARunThatTakesOverEndsTheFirst) {
  auto first = Start(Train());
  EXPECT_TRUE(testing::Eventually([&] { return FileExists(Path("run/job.json")); })) << Output();
  auto second = StartTraining({"--workers=1", "--ps=1", "--take_over"});
  EXPECT_THAT(Output(),
              HasSubstr(absl::StrCat("replaces the coordinator (process ", first->pid(), " on ")));
  EXPECT_EQ(ExitOf(first.get()), 5);
  // From now on the directory is the second one's.
  EXPECT_EQ(Run(Train()), 2);
  EXPECT_THAT(Output(), HasSubstr(RefusalBy(*second)));
  ExpectEndsUndisturbed(second.get());
}

// It hangs; its lock is as good as that of one which works.
TEST_F(JobLockTest, AStoppedOneIsReplacedOnRequest) {
  auto first = Start(Train());
  EXPECT_TRUE(testing::Eventually([&] { return FileExists(Path("run/job.json")); })) << Output();
  ASSERT_TRUE(testing::Suspend(first->pid()));
  EXPECT_EQ(Run(Train()), 2);
  EXPECT_THAT(Output(), HasSubstr(RefusalBy(*first)));
  auto second = StartTraining({"--workers=1", "--ps=1", "--take_over"});
  ExpectEndsUndisturbed(second.get());
  MU_ASSERT_OK(first->Kill(SIGCONT));
  EXPECT_EQ(ExitOf(first.get()), 5);
  EXPECT_EQ(Report(Path("run/report.json"))["status"], "stopped") << "it is the second one's";
}

}  // namespace
}  // namespace mu
