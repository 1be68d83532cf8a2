// What a process says at its end; Kubernetes and scripts read it.
#pragma once

#include "absl/status/status.h"

namespace mu {

enum ExitCode {
  kExitDone = 0,
  kExitBadJob = 2,          // the job or its input is wrong: no use in trying again
  kExitFunctionFailed = 3,  // the user's function failed while it ran
  kExitMachines = 4,        // processes, network, disks: try again
  // A newer coordinator has taken the job over. Started again, this one would end that one.
  kExitSuperseded = 5,
};

// By the error's kind and detail, never by its text.
int ExitCodeOf(const absl::Status& status);

// Of a run that a signal ended cleanly, as shells count: 130 for SIGINT, 143 for SIGTERM,
// 129 for SIGHUP.
inline int ExitCodeOfSignal(int signal) { return 128 + signal; }

}  // namespace mu
