#include "coordinator/soak/soak_process.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

// How a run is recorded of a shell's script that is asked to end once it has come to its `rest`.
SoakRecord Asked(const std::string& first, const std::string& rest) {
  const auto directory = TempDirectory::Create("soak_process");
  MU_EXPECT_OK(directory.status());
  const std::string there = JoinPath(directory->path(), "there");
  std::atomic<int> stop = 0;
  std::thread asks([&] {
    EXPECT_TRUE(testing::Eventually([&] { return FileExists(there); }));
    stop = 1;
  });
  SoakCommand command;
  command.program = "sh";
  command.args = {"-c", absl::StrCat(first, "; touch ", there, "; ", rest)};
  command.stop = &stop;
  const auto record = TrainAsProcess(command, {"", directory->path(), absl::InfiniteDuration()});
  asks.join();
  MU_EXPECT_OK(record.status());
  return record.value_or(SoakRecord());
}

TEST(SoakProcess, ARunThatIsAskedToEndBeforeItIsReadyForThatIsStopped) {
  EXPECT_EQ(Asked("true", "exec sleep 100").status, "stopped");
}

TEST(SoakProcess, ARunThatIsAskedToEndBeforeItHasAReportIsStopped) {
  EXPECT_EQ(Asked("trap 'exit 130' INT", "while :; do sleep 0.05; done").status, "stopped");
}

TEST(SoakProcess, ARunThatFailsAllTheSameHasFailed) {
  EXPECT_EQ(Asked("trap 'exit 4' INT", "while :; do sleep 0.05; done").status, "failed");
  EXPECT_EQ(Asked("true", "kill -TERM $$").status, "died");
}

}  // namespace
}  // namespace mu
