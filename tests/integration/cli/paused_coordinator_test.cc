// The coordinator's process stands still for a while: a machine that swaps, a virtual machine that
// is moved, a debugger.
#include <gmock/gmock.h>
#include <signal.h>

#include "tests/integration/cli/cli_run.h"
#include "tests/testing/suspend.h"

namespace mu {
namespace {

using ::testing::IsEmpty;

class PausedCoordinatorTest : public testing::CliTest {};

// The daemons' heartbeats found nobody for three timeouts. That says nothing of the daemons: none
// is lost, nothing runs again.
TEST_F(PausedCoordinatorTest, CoordinatorPaused) {
  constexpr absl::Duration kTimeout = absl::Seconds(2);
  auto job = Start(
      {"train",
       Job({{"epochs: 1, batch_size: 32", "epochs: 10, batch_size: 4, steps_per_function: 20"},
            {"training:", "checkpoint: {every: never, every_steps: 250, keep: 1000}\ntraining:"}}),
       "--local", "--workers=2", "--ps=2", "--member_timeout=2", "--job_dir=" + Path("run")});
  ASSERT_TRUE(testing::Eventually([&] {
    return FileExists(Path("run/checkpoints/ckpt-00000001/manifest.json"));
  })) << Output();
  ASSERT_TRUE(testing::Suspend(job->pid()));
  EXPECT_FALSE(
      testing::Eventually([&] { return FileExists(Path("run/report.json")); }, 3 * kTimeout))
      << "it was stopped too late to see anything";
  ASSERT_EQ(kill(job->pid(), SIGCONT), 0);
  EXPECT_EQ(ExitOf(job.get()), 0) << Output();
  const auto report = Report(Path("run/report.json"));
  EXPECT_THAT(report["failures"], IsEmpty()) << Output();
  EXPECT_EQ(report["failure_totals"]["steps_repeated"], 0);
  EXPECT_EQ(report["samples"], 10 * 2000);
  EXPECT_EQ(report["steps"], 10 * 2000 / 4);
}

}  // namespace
}  // namespace mu
