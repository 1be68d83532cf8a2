// The clock of the machine is set while a job trains.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_format.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::UnorderedElementsAre;

class SetClockTest : public testing::CliTest {
 protected:
  // Of all processes that are started from now on, against the real one.
  void SetClock(absl::Duration offset) {
    const int64_t seconds = absl::ToInt64Seconds(offset);
    std::string bytes(sizeof(seconds), '\0');
    std::memcpy(bytes.data(), &seconds, sizeof(seconds));
    // In place: they have it mapped.
    const int fd = open(Path("clock").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(pwrite(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    close(fd);
  }
  void Kill(const std::string& daemon) {
    const std::string log = ReadFile(Path("run/logs/coordinator.log")).value_or("");
    std::smatch found;
    ASSERT_TRUE(
        std::regex_search(log, found, std::regex("started " + daemon + " \\(pid (\\d+)\\)")))
        << log;
    EXPECT_EQ(kill(std::stoi(found[1]), SIGKILL), 0);
  }
  void WaitForCheckpoint(Subprocess* job, int number) {
    const std::string manifest =
        Path(absl::StrFormat("run/checkpoints/ckpt-%08d/manifest.json", number));
    EXPECT_TRUE(testing::Eventually([&] { return FileExists(manifest) || job->TryWait(); }))
        << Output();
  }
};

// Back by an hour, then forward by two: nobody is taken for silent, nothing waits for an hour, and
// who is lost meanwhile is found out and replaced.
TEST_F(SetClockTest, WhileAJobTrains) {
  SetClock(absl::ZeroDuration());
  environment_ = {"LD_PRELOAD=" MUSTER_SET_CLOCK, "MUSTER_TEST_CLOCK=" + Path("clock")};
  if (const char* const options = getenv("ASAN_OPTIONS"))
    environment_.push_back(absl::StrCat("ASAN_OPTIONS=", options, ":verify_asan_link_order=0"));
  auto job = Start(
      {"train",
       Job({{"epochs: 1, batch_size: 32", "epochs: 20, batch_size: 4, steps_per_function: 20"},
            {"training:", "checkpoint: {every: never, every_steps: 250, keep: 1000}\ntraining:"}}),
       "--local", "--workers=2", "--ps=2", "--job_dir=" + Path("run")});
  WaitForCheckpoint(job.get(), 1);
  SetClock(-absl::Hours(1));
  WaitForCheckpoint(job.get(), 2);
  Kill("psserver-1");
  WaitForCheckpoint(job.get(), 3);
  SetClock(absl::Hours(1));
  WaitForCheckpoint(job.get(), 4);
  Kill("worker-0");
  EXPECT_EQ(ExitOf(job.get()), 0) << Output();
  const auto report = Report(Path("run/report.json"));
  EXPECT_EQ(report["samples"], 20 * 2000);
  std::vector<std::string> lost;
  for (const auto& failure : report["failures"]) {
    lost.push_back(failure["role"]);
    EXPECT_NE(failure["kind"], "silent");
  }
  EXPECT_THAT(lost, UnorderedElementsAre("psserver", "worker")) << Output();
}

}  // namespace
}  // namespace mu
