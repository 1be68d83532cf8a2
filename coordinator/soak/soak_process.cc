#include "coordinator/soak/soak_process.h"

#include <signal.h>

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "coordinator/soak/preempt_command.h"
#include "coordinator/training/exit_code.h"

namespace mu {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(200);  // at whether the soak is to end
constexpr size_t kTail = 2000;

std::string Tail(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text.ok()) return "";
  return text->size() <= kTail ? *text : text->substr(text->size() - kTail);
}

// By itself, or before it was ready to do so.
bool Stopped(const ExitStatus& status) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (status.signal == signal || status.code == ExitCodeOfSignal(signal)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<SoakRecord> TrainAsProcess(const SoakCommand& command, const SoakRun& run) {
  const std::string report = JoinPath(run.directory, "report.json");
  SubprocessOptions options;
  options.path = command.program;
  options.args = command.args;
  options.args.push_back(absl::StrCat("--job_dir=", JoinPath(run.directory, "run")));
  options.args.push_back(absl::StrCat("--report=", report));
  const bool by_command = !command.preempt_command.empty();
  if (!run.chaos.empty() && !by_command)
    options.args.push_back(absl::StrCat("--chaos=", run.chaos));
  options.output_file = JoinPath(run.directory, "output.txt");
  options.parent_pipe = true;

  const absl::Time begin = SteadyNow();
  MU_ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> process, Subprocess::Start(options));
  std::unique_ptr<PreemptCommand> preempting;
  if (by_command) {
    MU_ASSIGN_OR_RETURN(preempting, PreemptCommand::Start(command.preempt_command, run.chaos));
  }
  bool asked = false, hangs = false;
  std::optional<ExitStatus> status;
  while (!(status = process->WaitFor(kLook)).has_value()) {
    if (!asked && command.stop != nullptr && command.stop->load() > 0) {
      asked = true;
      process->Kill(SIGINT).IgnoreError();
    }
    if (!hangs && SteadyNow() - begin > run.limit) {
      hangs = true;
      process->Kill(SIGKILL).IgnoreError();  // its daemons notice, and end
    }
  }

  SoakRecord record;
  record.metric = command.metric;
  record.exact = command.exact;
  record.seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
  if (status->code == kExitBadJob && run.chaos.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the job is wrong:\n", Tail(options.output_file)));
  }
  if (const auto text = ReadFile(report); text.ok()) {
    if (const absl::Status filled = FillFromReport(*text, &record); !filled.ok())
      record.error = absl::StrCat(report, ": ", filled.message());
  }
  if (hangs) {
    record.status = "hung";
    record.error = absl::StrCat("it still ran after ", absl::FormatDuration(run.limit));
  } else if (asked && record.status.empty() && Stopped(*status)) {
    record.status = "stopped";  // before it was ready to say so
  } else if (status->signal != 0) {
    record.status = "died";
    record.error = status->ToString();
  } else if (record.status.empty() || (record.done() && status->code != kExitDone)) {
    record.status = "failed";
    record.error = absl::StrCat(status->ToString(), record.error.empty() ? "" : "; ", record.error);
  }
  return record;
}

}  // namespace mu
