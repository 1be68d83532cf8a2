#include "bench/scale/hosts.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu::scale {

Hosts::Hosts(std::string directory, std::string kind)
    : directory_(std::move(directory)), kind_(std::move(kind)) {}

absl::Status Hosts::Start(int services, const std::string& coordinator, const Options& options,
                          int hosts) {
  hosts = std::clamp(services, 1, hosts);
  for (int h = 0; h < hosts; ++h) {
    const std::string log = absl::StrCat(directory_, "/", kind_, "-", processes_.size());
    SubprocessOptions process;
    process.path = FolderOfThisProgram() + "/scale";
    process.args = {"--host=" + kind_, "--log=" + log,
                    absl::StrCat("--workers=", services / hosts + (h < services % hosts ? 1 : 0)),
                    absl::StrCat("--step_ms=", options.step_ms),
                    absl::StrCat("--churn=", options.churn / hosts)};
    if (!coordinator.empty()) process.args.push_back("--coordinator=" + coordinator);
    process.output_file = log + ".log";
    process.ready_pipe = process.parent_pipe = true;
    MU_ASSIGN_OR_RETURN(auto started, Subprocess::Start(process));
    processes_.push_back(std::move(started));
    logs_.push_back(log);
  }
  for (const auto& process : processes_) {
    MU_ASSIGN_OR_RETURN(const std::string line, process->ReadReadyLine(absl::Minutes(2)));
    for (absl::string_view address : absl::StrSplit(line, ' ')) addresses_.emplace_back(address);
  }
  return absl::OkStatus();
}

absl::Status Hosts::Go() {
  for (const auto& process : processes_) MU_RETURN_IF_ERROR(process->Kill(SIGUSR1));
  return absl::OkStatus();
}

absl::StatusOr<HostLog> Hosts::Stop() {
  for (const auto& process : processes_) MU_RETURN_IF_ERROR(process->Kill(SIGTERM));
  HostLog log;
  for (size_t i = 0; i < processes_.size(); ++i) {
    const auto exit = processes_[i]->WaitFor(absl::Minutes(1));
    if (!exit.has_value() || !exit->ok()) {
      return absl::InternalError(
          absl::StrCat("a process of workers did not end well: ",
                       exit.has_value() ? exit->ToString() : "it does not end", "\n",
                       ReadFile(logs_[i] + ".log").value_or("")));
    }
    MU_RETURN_IF_ERROR(ReadHostLog(logs_[i], &log));
  }
  return log;
}

}  // namespace mu::scale
