// The report's `eval` is that of the values that were saved, whatever dies after they were
// measured.
#include <gmock/gmock.h>

#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

class EvaluationAfterLossTest : public testing::CliTest {
 protected:
  // Steps that run again find other values, since several workers push. Its checkpoint takes a
  // while.
  std::string LargeJob() {
    const std::string data =
        "{format: csv, files: [data.csv], columns: [{name: user, kind: number}, {name: item, kind: "
        "number}, {name: rating, kind: label, positive: [\"3.5\", \"4.5\"]}]}\n";
    WriteText("job.yaml",
              absl::StrCat("name: large\ndata:\n  train: ", data, "  eval: ", data,
                           "model: {mlp: {features: [{column: user}, {column: item}], "
                           "label_column: rating, hidden: [1024, 1024]}}\n"
                           "optimizer: {adagrad: {learning_rate: 0.01}}\n"
                           "training: {batch_size: 8, max_steps: 40, eval_every: {steps: 20}}\n"
                           "checkpoint: {every: never}\n"));
    return Path("job.yaml");
  }
  // A server of the run that lives.
  pid_t Server(const std::string& job_dir) {
    for (const pid_t pid : Daemons(job_dir)) {
      const std::string command = ReadFile(absl::StrCat("/proc/", pid, "/cmdline")).value_or("");
      if (command.find("psserver") != std::string::npos) return pid;
    }
    return 0;
  }
};

TEST_F(EvaluationAfterLossTest, AServerThatDiesWhileItIsSaved) {
  constexpr int kMostTries = 20;  // the machine may be too quick
  bool repeated = false;
  for (int tries = 0; tries < kMostTries && !repeated; ++tries) {
    const std::string job = LargeJob(), run = Path(absl::StrCat("run-", tries));
    const auto process =
        Start({"train", job, "--local", "--workers=3", "--ps=2", "--job_dir=" + run});
    // Nothing else takes a checkpoint.
    EXPECT_TRUE(testing::Eventually([&] {
      const auto files = ListDirectory(run + "/checkpoints/ckpt-00000001");
      return files.ok() && !files->empty();
    })) << Output();
    if (const pid_t server = Server(run); server != 0) ::kill(server, SIGKILL);
    ASSERT_EQ(ExitOf(process.get()), 0) << Output();
    const nlohmann::json report = Report(run + "/report.json");
    repeated = report["failure_totals"]["steps_repeated"].get<uint64_t>() > 0;
    ASSERT_EQ(Run({"eval", job, "--local", "--workers=1", "--ps=2", "--job_dir=" + run}), 0)
        << Output();
    const nlohmann::json saved = Report(run + "/eval_report.json");
    ASSERT_GT(report["eval"]["examples"].get<uint64_t>(), 0u);
    for (const auto& [name, value] : saved["eval"].items()) {
      SCOPED_TRACE(name);
      ASSERT_EQ(value.is_null(), report["eval"][name].is_null());
      if (!value.is_null()) {
        EXPECT_NEAR(report["eval"][name].get<double>(), value.get<double>(), 1e-6);
      }
    }
  }
  EXPECT_TRUE(repeated) << "every checkpoint was complete before the server died";
}

}  // namespace
}  // namespace mu
