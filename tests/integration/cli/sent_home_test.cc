// Daemons whose job is over before its coordinator has begun: done, wrong, or another one's.
#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/integration/cli/restart.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

class SentHomeTest : public testing::RestartTest {};

// Its coordinator died between its last word and theirs: they wait for another one.
TEST_F(SentHomeTest, DaemonsOfAJobThatIsDoneAreSentHome) {
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("cluster")}), 0) << Output();
  const std::string address = FreeAddress();
  Job();  // FreeAddress wrote another one
  auto again = Start({"train", Path("job.yaml"), "--listen=" + address, "--workers=2", "--ps=2",
                      "--job_dir=" + Path("cluster")});
  const auto daemons = StartDaemons(address);
  EXPECT_EQ(ExitOf(again.get()), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("it is done: nothing is trained"));
  ExpectSentHome(daemons);
}

// Exit code 2 is for good: nobody will come to these daemons.
TEST_F(SentHomeTest, DaemonsOfAJobThatIsWrongAreSentHome) {
  const std::string address = FreeAddress();
  auto wrong =
      Start({"train", Job({{"learning_rate: 0.1", "learning_rat: 0.1"}}), "--listen=" + address,
             "--workers=2", "--ps=2", "--job_dir=" + Path("cluster")});
  const auto daemons = StartDaemons(address);
  EXPECT_EQ(ExitOf(wrong.get()), 2) << Output();
  EXPECT_THAT(Output(), HasSubstr("there is no key `learning_rat`"));
  EXPECT_THAT(Output(), HasSubstr("daemons that register at " + address + " are sent home"));
  ExpectSentHome(daemons);
  EXPECT_FALSE(FileExists(Path("cluster"))) << "nothing was started";
}

// Nobody can have registered there. All that is wrong is told once.
TEST_F(SentHomeTest, NobodyIsSentHomeFromAnAddressThatIsWrong) {
  const auto training = StartTraining({"--local", "--listen=127.0.0.1:0"});
  const std::string taken = ListenAddress();
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--listen=0.0.0.0:7311"}, "--listen=0.0.0.0:7311"},
      {{"--listen=nowhere"}, "--listen=nowhere"},
      {{"--listen=" + taken}, "cannot listen on " + taken},
      {{"--listen=127.0.0.1:0", "--workers=0"}, "at least 1 worker"}};
  for (const auto& [flags, says] : wrong) {
    std::vector<std::string> args = {"train", Job(), "--job_dir=" + Path("cluster")};
    args.insert(args.end(), flags.begin(), flags.end());
    EXPECT_EQ(Run(args), 2);
    const std::vector<std::string> around = absl::StrSplit(Output(), says);
    EXPECT_EQ(around.size(), 2u) << "it is not told once\n" << Output();
    EXPECT_THAT(Output(), HasSubstr("1 problem; nothing was started:\n"));
    EXPECT_THAT(Output(), ::testing::Not(HasSubstr("daemons that "))) << says;
  }
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(training->Wait().code, 130);
}

// Those that wait for their coordinator obey none of another job.
TEST_F(SentHomeTest, DaemonsThatServedAJobAreSentHomeWhenItHasBecomeWrong) {
  const std::string address = FreeAddress();
  const std::vector<std::string> args = {"train",       LongJob(), "--listen=" + address,
                                         "--workers=2", "--ps=2",  "--job_dir=" + Path("cluster")};
  auto first = Start(args);
  auto daemons = StartDaemons(address);
  WaitForCheckpoints(Path("cluster"), 1);
  MU_ASSERT_OK(first->Kill(SIGKILL));
  ExitOf(first.get());
  LongJob("much");
  EXPECT_EQ(Run(args), 2) << Output();
  ExpectSentHome(daemons);
  // Right again, but another job than the one in the folder.
  daemons = StartDaemons(address);
  LongJob("0.02");
  EXPECT_EQ(Run(args), 2) << Output();
  EXPECT_THAT(Output(), HasSubstr("the unfinished run of another job"));
  ExpectSentHome(daemons);
  // The run is as it was.
  daemons = StartDaemons(address);
  LongJob();
  const auto last = Start(args);
  EXPECT_TRUE(testing::Eventually([&] { return absl::StrContains(Output(), "CONTINUES"); }));
  MU_ASSERT_OK(last->Kill(SIGTERM));
  EXPECT_EQ(ExitOf(last.get()), 143) << Output();
}

TEST_F(SentHomeTest, AWrongJobDisturbsNobodyWhoTrainsInItsFolder) {
  const std::string address = FreeAddress();
  auto first = Start({"train", LongJob(), "--listen=" + address, "--workers=2", "--ps=2",
                      "--job_dir=" + Path("cluster")});
  const auto daemons = StartDaemons(address);
  WaitForCheckpoints(Path("cluster"), 1);
  LongJob("much");
  EXPECT_EQ(Run({"train", Path("job.yaml"), "--listen=127.0.0.1:0", "--workers=2", "--ps=2",
                 "--job_dir=" + Path("cluster")}),
            2);
  const std::string newest = Checkpoints(Path("cluster")).back();
  EXPECT_TRUE(testing::Eventually([&] { return Checkpoints(Path("cluster")).back() != newest; }));
  MU_ASSERT_OK(first->Kill(SIGTERM));
  EXPECT_EQ(ExitOf(first.get()), 143) << "5: another one has taken the job over";
  const auto report = Report(Path("cluster/report.json"));
  EXPECT_EQ(report["status"], "stopped");
  EXPECT_EQ(report["failures"].size(), 0u);
}

}  // namespace
}  // namespace mu
