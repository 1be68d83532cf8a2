// The coordinator's process stands still until its connections break and the workers have lost
// their patience.
#include <gmock/gmock.h>
#include <signal.h>

#include "tests/integration/cli/cli_run.h"
#include "tests/testing/suspend.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PausedCoordinatorLongTest : public testing::CliTest {};

TEST_F(PausedCoordinatorLongTest, CoordinatorPausedBeyondPatience) {
  // Connections break after 15 s (keepalive), and workers give their runs up after three timeouts
  // more, here 9 s.
  constexpr absl::Duration kPause = absl::Seconds(30);
  auto job = Start(
      {"train",
       Job({{"epochs: 1, batch_size: 32", "epochs: 10, batch_size: 4, steps_per_function: 20"},
            {"training:", "checkpoint: {every: never, every_steps: 250, keep: 1000}\ntraining:"}}),
       "--local", "--workers=2", "--ps=2", "--member_timeout=3", "--job_dir=" + Path("run")});
  ASSERT_TRUE(testing::Eventually([&] {
    return FileExists(Path("run/checkpoints/ckpt-00000001/manifest.json"));
  })) << Output();
  ASSERT_TRUE(testing::Suspend(job->pid()));
  EXPECT_FALSE(testing::Eventually([&] { return FileExists(Path("run/report.json")); }, kPause))
      << "it was stopped too late to see anything";
  ASSERT_EQ(kill(job->pid(), SIGCONT), 0);
  EXPECT_EQ(ExitOf(job.get()), 0) << Output();
  EXPECT_THAT(ReadFile(Path("run/logs/coordinator.log")).value_or(""),
              HasSubstr("has broken and is opened again"));
  const auto report = Report(Path("run/report.json"));
  EXPECT_THAT(report["failures"], IsEmpty()) << Output();
  EXPECT_EQ(report["failure_totals"]["steps_repeated"], 0);
  EXPECT_EQ(report["samples"], 10 * 2000);
  EXPECT_EQ(report["steps"], 10 * 2000 / 4);
}

}  // namespace
}  // namespace mu
