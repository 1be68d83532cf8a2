// Runs the real `coordinator` program in a folder of its own and looks at what it leaves behind.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"
#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait.h"
#include "tests/testing/with_this_test.h"

namespace mu::testing {

inline bool ProcessRuns(pid_t pid) {
  if (::kill(pid, 0) != 0) return errno != ESRCH;
  // One that has ended but that nobody has waited for does not run.
  const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  if (!stat.ok()) return false;
  const size_t name_end = stat->rfind(')');
  return name_end != std::string::npos && stat->compare(name_end, 3, ") Z") != 0;
}

class CliTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TempDirectory::Create("cli_test");
    ASSERT_THAT(directory, IsOk());
    directory_ = std::make_unique<TempDirectory>(*std::move(directory));
    std::string data = "user,item,rating\n";
    for (int i = 0; i < 2000; ++i)
      absl::StrAppend(&data, i % 10, ",", i * 7 % 20, ",", i % 5, ".5\n");
    WriteText("data.csv", data);
  }

  std::string Path(const std::string& name) const { return JoinPath(directory_->path(), name); }
  void WriteText(const std::string& name, const std::string& text) {
    MU_ASSERT_OK(WriteFileAtomic(Path(name), text));
  }

  // A small job that is right; `changes` are replaced in its text.
  std::string Job(const std::vector<std::pair<std::string, std::string>>& changes = {}) {
    std::string text =
        "name: small\n"                           // 1
        "data:\n"                                 // 2
        "  train:\n"                              // 3
        "    format: csv\n"                       // 4
        "    files: [data.csv]\n"                 // 5
        "    columns:\n"                          // 6
        "      - {name: user, kind: id}\n"        // 7
        "      - {name: item, kind: id}\n"        // 8
        "      - {name: rating, kind: number}\n"  // 9
        "model:\n"                                // 10
        "  matrix_factorization:\n"               // 11
        "    {dim: 4, users: 10, items: 20, user_column: user, item_column: item, rating_column: "
        "rating}\n"
        "optimizer: {sgd: {learning_rate: 0.1}}\n"  // 13
        "training: {epochs: 1, batch_size: 32}\n";  // 14
    for (const auto& [from, to] : changes) {
      EXPECT_NE(text.find(from), std::string::npos) << from;
      text = absl::StrReplaceAll(text, {{from, to}});
    }
    WriteText("job.yaml", text);
    return Path("job.yaml");
  }
  // Trains for as long as a test may want to look at it.
  std::string EndlessJob() { return Job({{"epochs: 1", "epochs: 1000000"}}); }

  std::unique_ptr<Subprocess> Start(std::vector<std::string> args) {
    SubprocessOptions options;
    options.path = absl::StrCat(MUSTER_BINARY_DIR, "/", program_);
    options.args = std::move(args);
    if (!within_.empty()) {
      options.args.insert(options.args.begin(), options.path);
      options.args.insert(options.args.begin(), within_.begin() + 1, within_.end());
      options.path = within_.front();
    }
    if (!folder_.empty()) {
      options.args.insert(options.args.begin(),
                          {"-c", "cd \"$0\" && exec \"$@\"", folder_, options.path});
      options.path = "sh";
    }
    output_file_ = Path(absl::StrCat("output-", ++runs_));
    options.output_file = output_file_;
    options.environment = environment_;
    auto process = Subprocess::Start(EndsWithThisTest(std::move(options)));
    EXPECT_THAT(process, IsOk());
    MU_CHECK(process.ok());
    return *std::move(process);
  }
  // Starts `train` of an endless job and returns when it trains.
  std::unique_ptr<Subprocess> StartTraining(std::vector<std::string> more = {}) {
    std::vector<std::string> args = {"train", EndlessJob(), "--job_dir=" + Path("run")};
    args.insert(args.end(), more.begin(), more.end());
    auto process = Start(std::move(args));
    EXPECT_TRUE(Eventually(
        [&] { return Output().find("\ntraining ") != std::string::npos || process->TryWait(); }));
    EXPECT_EQ(process->TryWait(), std::nullopt) << Output();
    return process;
  }
  // The exit code; minus the signal if one ended it.
  int Run(std::vector<std::string> args) { return ExitOf(Start(std::move(args)).get()); }
  int ExitOf(Subprocess* process) {
    const auto exit = process->WaitFor(kRunPatience);
    EXPECT_TRUE(exit.has_value()) << "still runs\n" << Output();
    if (!exit.has_value()) return -1000;
    return exit->signal != 0 ? -exit->signal : exit->code;
  }
  // Of the last run, both streams.
  std::string Output() const {
    const auto text = ReadFile(output_file_);
    return text.ok() ? *text : "";
  }

  // Where the coordinator of StartTraining listens.
  std::string ListenAddress() const {
    const std::string log = ReadFile(Path("run/logs/coordinator.log")).value_or("");
    std::smatch found;
    EXPECT_TRUE(std::regex_search(log, found, std::regex("listens at (\\S+)"))) << log;
    return found.empty() ? "" : found[1].str();
  }
  // Returns when the training that StartTraining started into "run" has made steps.
  void WaitForSteps() {
    const std::string address = ListenAddress();
    const std::string training_output = output_file_;
    EXPECT_TRUE(Eventually([&] {
      return Run({"status", address}) == 0 && Output().find("\nsteps: 0,") == std::string::npos;
    })) << Output();
    output_file_ = training_output;
  }

  // The daemons that a run started, from the coordinator's log.
  std::vector<pid_t> Daemons(const std::string& job_dir) const {
    std::vector<pid_t> pids;
    const auto log = ReadFile(JoinPath(job_dir, "logs/coordinator.log"));
    if (!log.ok()) return pids;
    static const std::regex kStarted("started \\S+ \\(pid (\\d+)\\)");
    for (std::sregex_iterator it(log->begin(), log->end(), kStarted), end; it != end; ++it) {
      pids.push_back(std::stoi((*it)[1]));
    }
    return pids;
  }
  void ExpectNoDaemonLeft(const std::string& job_dir, size_t started) {
    const std::vector<pid_t> pids = Daemons(job_dir);
    EXPECT_EQ(pids.size(), started);
    for (const pid_t pid : pids)
      EXPECT_TRUE(Eventually([&] { return !ProcessRuns(pid); })) << pid << " still runs";
  }
  nlohmann::json Report(const std::string& path) const {
    const auto text = ReadFile(path);
    EXPECT_THAT(text, IsOk());
    return text.ok() ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
  }

  std::string program_ = "coordinator";   // what Start starts
  std::vector<std::string> within_;       // a program, with arguments, that starts it
  std::vector<std::string> environment_;  // "NAME=value", for it
  std::string folder_;                    // where it runs; empty: where this process does

 private:
  std::unique_ptr<TempDirectory> directory_;
  std::string output_file_;
  int runs_ = 0;
};

}  // namespace mu::testing
