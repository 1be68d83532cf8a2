// Runs of `coordinator train` that are ended and started again, with daemons that somebody else has
// started.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/cli/cli_run.h"

namespace mu::testing {

#ifdef __SANITIZE_ADDRESS__
inline constexpr int kEpochs = 12;  // ten times slower
#else
inline constexpr int kEpochs = 20;
#endif
inline constexpr int kRecords = 2000;

class RestartTest : public CliTest {
 protected:
  // Long enough to be killed on the way; the order of its steps is fixed.
  std::string LongJob(const std::string& rate = "0.01") {
    return Job({{"learning_rate: 0.1", "learning_rate: " + rate},
                {"model:",
                 "  predict: {format: csv, files: [data.csv], columns: [{name: user, kind: id}, "
                 "{name: item, kind: id}]}\n"
                 "model:"},
                {"training: {epochs: 1, batch_size: 32}",
                 absl::StrCat("training: {epochs: ", kEpochs,
                              ", batch_size: 4, steps_per_function: 20, functions_in_flight: 1}\n"
                              "checkpoint: {every: never, every_steps: 500}")}});
  }
  // Those that are complete, oldest first.
  std::vector<std::string> Checkpoints(const std::string& job_dir) const {
    std::vector<std::string> complete;
    for (const std::string& name :
         ListDirectory(job_dir + "/checkpoints").value_or(std::vector<std::string>())) {
      const std::string directory = absl::StrCat(job_dir, "/checkpoints/", name);
      if (FileExists(directory + "/manifest.json")) complete.push_back(directory);
    }
    return complete;
  }
  void WaitForCheckpoints(const std::string& job_dir, size_t count) {
    EXPECT_TRUE(Eventually([&] { return Checkpoints(job_dir).size() >= count; })) << Output();
  }
  // HOST:PORT that was free a moment ago.
  std::string FreeAddress() {
    auto probe = StartTraining({"--local", "--listen=127.0.0.1:0", "--workers=1", "--ps=1"});
    std::string address = ListenAddress();
    MU_EXPECT_OK(probe->Kill(SIGKILL));
    ExitOf(probe.get());
    return address;
  }
  // Servers 0 and 1, then workers 0 and 1.
  std::vector<std::unique_ptr<Subprocess>> StartDaemons(const std::string& address) {
    std::vector<std::unique_ptr<Subprocess>> daemons;
    for (int i = 0; i < 4; ++i) {
      SubprocessOptions options;
      options.path = std::string(MUSTER_BINARY_DIR) + (i < 2 ? "/psserver" : "/worker");
      options.args = {"--coordinator=" + address, absl::StrCat("--index=", i % 2),
                      "--drained_exit_code=143"};
      if (i >= 2) options.args.push_back("--cache_dir=" + Path(absl::StrCat("cache-", i)));
      options.output_file = Path(absl::StrCat("daemon-", i));
      auto daemon = Subprocess::Start(EndsWithThisTest(std::move(options)));
      MU_EXPECT_OK(daemon.status());
      daemons.push_back(*std::move(daemon));
    }
    return daemons;
  }
  // As after the end of their job.
  void ExpectSentHome(const std::vector<std::unique_ptr<Subprocess>>& daemons) {
    for (const auto& daemon : daemons) {
      const auto end = daemon->WaitFor(absl::Seconds(20));
      ASSERT_TRUE(end.has_value());
      EXPECT_EQ(end->code, 0) << end->ToString();
    }
  }
  void ExpectWhole(const nlohmann::json& report, int epochs = kEpochs) {
    EXPECT_EQ(report["status"], "done");
    EXPECT_EQ(report["samples"], epochs * kRecords);
    EXPECT_EQ(report["steps"], epochs * kRecords / 4);
  }
};

}  // namespace mu::testing
