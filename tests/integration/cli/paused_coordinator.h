// A job whose coordinator stands still for a while: a machine that swaps, a virtual machine that is
// moved, a debugger.
#pragma once

#include <gmock/gmock.h>
#include <signal.h>

#include <string>

#include "tests/integration/cli/cli_run.h"
#include "tests/testing/suspend.h"

namespace mu::testing {

class PausedCoordinatorTest : public CliTest {
 protected:
  // Trains with that --member_timeout, in seconds, and stops the coordinator's process for `pause`
  // after the first checkpoint. That says nothing of the daemons: none is lost, nothing runs again.
  void TrainPaused(int member_timeout, absl::Duration pause) {
    auto job = Start(
        {"train",
         Job({{"epochs: 1, batch_size: 32", "epochs: 10, batch_size: 4, steps_per_function: 20"},
              {"training:",
               "checkpoint: {every: never, every_steps: 250, keep: 1000}\ntraining:"}}),
         "--local", "--workers=2", "--ps=2", absl::StrCat("--member_timeout=", member_timeout),
         "--job_dir=" + Path("run")});
    ASSERT_TRUE(Eventually([&] {
      return FileExists(Path("run/checkpoints/ckpt-00000001/manifest.json"));
    })) << Output();
    ASSERT_TRUE(Suspend(job->pid()));
    EXPECT_FALSE(Eventually([&] { return FileExists(Path("run/report.json")); }, pause))
        << "it was stopped too late to see anything";
    ASSERT_EQ(kill(job->pid(), SIGCONT), 0);
    EXPECT_EQ(ExitOf(job.get()), 0) << Output();
    const auto report = Report(Path("run/report.json"));
    EXPECT_THAT(report["failures"], ::testing::IsEmpty()) << Output();
    EXPECT_EQ(report["failure_totals"]["steps_repeated"], 0);
    EXPECT_EQ(report["samples"], 10 * 2000);
    EXPECT_EQ(report["steps"], 10 * 2000 / 4);
  }
};

}  // namespace mu::testing
