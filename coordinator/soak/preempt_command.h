// Preemptions on a cluster, whose daemons are not this machine's to end: a shell command of the
// user's ends them.
//
//   MU_ASSIGN_OR_RETURN(const auto preempting, mu::PreemptCommand::Start(command, run.chaos));
//   ... trains; the preemptions end with the object.
//
// The shell runs the command for each fault, with these in its environment: MUSTER_ROLE (worker,
// psserver), MUSTER_ACTION (kill, hang, drain) and MUSTER_CHOICE (a number; modulo those that are
// up it says which). A command that takes a minute is ended; one that fails is in the log.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "coordinator/launch/chaos_plan.h"

namespace mu {

class PreemptCommand {
 public:
  // Begins. `faults`: of SoakRun::chaos; empty: there are none. Commands run one after the other,
  // on a thread of the object's. INVALID_ARGUMENT says what is wrong with the faults, or that there
  // is no command for them.
  static absl::StatusOr<std::unique_ptr<PreemptCommand>> Start(const std::string& command,
                                                               const std::string& faults);
  // Begins no other command. Waits for one that runs.
  ~PreemptCommand();

 private:
  explicit PreemptCommand(const std::string& command) : command_(command) {}

  void Run(ChaosPlan plan);
  void Do(const ChaosEvent& event) const;

  const std::string command_;
  Notification over_;
  std::thread thread_;  // not joinable: there are no faults
};

}  // namespace mu
