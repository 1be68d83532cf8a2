#include "coordinator/soak/soak_process.h"

#include <signal.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "common/obs/log.h"
#include "coordinator/launch/chaos_plan.h"
#include "coordinator/training/exit_code.h"

namespace mu {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(200);  // at whether the soak is to end
constexpr absl::Duration kMostOfACommand = absl::Minutes(1);
constexpr size_t kTail = 2000;

// Preemptions by a command of the user's.
class PreemptCommand {
 public:
  PreemptCommand(const std::string& command, std::optional<ChaosPlan> plan)
      : command_(command), plan_(std::move(plan)), begin_(SteadyNow()) {
    Advance();
  }

  // Runs what is due.
  void Look() {
    while (next_.has_value() && SteadyNow() - begin_ >= next_->at) {
      Do(*next_);
      Advance();
    }
  }

 private:
  void Advance() { next_ = plan_.has_value() ? plan_->Next() : std::nullopt; }
  void Do(const ChaosEvent& event) const {
    const char* action = event.action == ChaosEvent::kKill   ? "kill"
                         : event.action == ChaosEvent::kHang ? "hang"
                                                             : "drain";
    SubprocessOptions options;
    options.path = "sh";
    options.args = {"-c", command_};
    options.environment = {absl::StrCat("MUSTER_ROLE=", event.worker ? "worker" : "psserver"),
                           absl::StrCat("MUSTER_ACTION=", action),
                           absl::StrCat("MUSTER_CHOICE=", event.choice >> 1)};
    const auto process = Subprocess::Start(options);
    if (!process.ok()) {
      MU_LOG(WARN, "preemption: {}", process.status());
      return;
    }
    const auto status = (*process)->WaitFor(kMostOfACommand);
    if (!status.has_value()) {
      MU_LOG(WARN, "preemption: `{}` was ended after {}", command_, kMostOfACommand);
    } else if (!status->ok()) {
      MU_LOG(WARN, "preemption: `{}` ended with {}", command_, status->ToString());
    }
  }

  const std::string command_;
  std::optional<ChaosPlan> plan_;
  const absl::Time begin_;
  std::optional<ChaosEvent> next_;
};

std::string Tail(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text.ok()) return "";
  return text->size() <= kTail ? *text : text->substr(text->size() - kTail);
}

}  // namespace

absl::StatusOr<SoakRecord> TrainAsProcess(const SoakCommand& command, const SoakRun& run) {
  const std::string report = JoinPath(run.directory, "report.json");
  SubprocessOptions options;
  options.path = command.program;
  options.args = command.args;
  options.args.push_back(absl::StrCat("--job_dir=", JoinPath(run.directory, "run")));
  options.args.push_back(absl::StrCat("--report=", report));
  std::optional<ChaosPlan> plan;
  if (!run.chaos.empty() && command.preempt_command.empty()) {
    options.args.push_back(absl::StrCat("--chaos=", run.chaos));
  } else if (!run.chaos.empty()) {
    MU_ASSIGN_OR_RETURN(plan, ChaosPlan::Parse(run.chaos));
  }
  options.output_file = JoinPath(run.directory, "output.txt");

  const absl::Time begin = SteadyNow();
  MU_ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> process, Subprocess::Start(options));
  PreemptCommand preempt(command.preempt_command, std::move(plan));
  bool asked = false, hangs = false;
  std::optional<ExitStatus> status;
  while (!(status = process->WaitFor(kLook)).has_value()) {
    preempt.Look();
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
