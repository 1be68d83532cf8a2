#include "coordinator/soak/preempt_command.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/env/subprocess.h"
#include "common/obs/log.h"

namespace mu {
namespace {

constexpr absl::Duration kMostOfACommand = absl::Minutes(1);

const char* NameOf(ChaosEvent::Action action) {
  switch (action) {
    case ChaosEvent::kKill:
      return "kill";
    case ChaosEvent::kHang:
      return "hang";
    case ChaosEvent::kDrain:
      return "drain";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<PreemptCommand>> PreemptCommand::Start(const std::string& command,
                                                                      const std::string& faults) {
  std::unique_ptr<PreemptCommand> preempting(new PreemptCommand(command));
  if (faults.empty()) return preempting;
  if (command.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no command ends the daemons for `", faults, "`; name one"));
  }
  MU_ASSIGN_OR_RETURN(ChaosPlan plan, ChaosPlan::Parse(faults));
  preempting->thread_ = std::thread(
      [self = preempting.get(), plan = std::move(plan)]() mutable { self->Run(std::move(plan)); });
  return preempting;
}

PreemptCommand::~PreemptCommand() {
  over_.Notify();
  if (thread_.joinable()) thread_.join();
}

void PreemptCommand::Run(ChaosPlan plan) {
  const absl::Time begin = SteadyNow();
  while (const std::optional<ChaosEvent> event = plan.Next()) {
    if (over_.WaitFor(begin + event->at - SteadyNow())) return;
    Do(*event);
  }
}

void PreemptCommand::Do(const ChaosEvent& event) const {
  SubprocessOptions options;
  options.path = "sh";
  options.args = {"-c", command_};
  options.environment = {absl::StrCat("MUSTER_ROLE=", event.worker ? "worker" : "psserver"),
                         absl::StrCat("MUSTER_ACTION=", NameOf(event.action)),
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

}  // namespace mu
