#include "coordinator/cli/continue_command.h"

#include <signal.h>

#include <cerrno>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/env/file.h"
#include "common/env/host_name.h"
#include "coordinator/cli/checkpoint_choice.h"
#include "coordinator/training/job_holder.h"
#include "coordinator/training/job_record.h"

namespace mu {
namespace {

std::string ForShell(const std::string& word) {
  const bool plain = !word.empty() && absl::c_all_of(word, [](char c) {
    return absl::ascii_isalnum(c) || std::string("-_./=:,+@%").find(c) != std::string::npos;
  });
  if (plain) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

bool IsTrainedNow(const std::string& run) {
  const auto lock = ReadFile(JoinPath(run, "lock"));
  if (!lock.ok()) return false;
  const JobHolder holder = ParseJobHolder(*lock);
  if (holder.pid == 0) return false;
  return holder.host != HostName() || ::kill(static_cast<pid_t>(holder.pid), 0) == 0 ||
         errno != ESRCH;
}

}  // namespace

std::string ContinueCommand(const CliOptions& cli, const muster::JobProto& job,
                            const std::string& job_dir, bool again) {
  std::vector<std::string> words;
  bool is_pipe = false;
  for (const std::string& word : cli.command_line) {
    // A pipe of the program that started this run. Where the command is given again, it is closed,
    // and the run would end at once.
    if (std::exchange(is_pipe, word == "--parent_pipe_fd") || word == "--parent_pipe_fd" ||
        absl::StartsWith(word, "--parent_pipe_fd="))
      continue;
    if (!again && (word == "--train_again" || word == "--train-again")) continue;
    // Whoever goes on later does not mean to end whoever trains by then.
    if (word == "--take_over" || word == "--take-over") continue;
    words.push_back(ForShell(word));
  }
  if (cli.job_dir.empty() && job.job_dir().empty())
    words.push_back(ForShell(absl::StrCat("--job_dir=", job_dir)));
  return absl::StrJoin(words, " ");
}

std::string UnfinishedRun(const std::string& runs, const muster::JobProto& job) {
  for (const RunOfJob& run : RunsOfJob(runs, job.name())) {
    if (!run.record.has_value() || run.record->status == "done" ||
        JobFingerprint(run.record->job) != JobFingerprint(job) || IsTrainedNow(run.directory))
      continue;
    return run.directory;
  }
  return "";
}

}  // namespace mu
