// What the worker's and the parameter server's main() say, and where.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/process/daemon.h"

namespace mu {

// Sets the log up as the flags ask; errors as InitLogging. `name` stands in every line of text.
absl::Status InitDaemonLog(const DaemonFlags& flags, const std::string& name);

// The last word of a daemon that cannot go on: on standard error, where whoever started it looks,
// and in the log, if that is elsewhere. Where the log goes to standard error as JSON, in the log
// only, so that whoever collects its lines can read all of them.
void TellEnd(const DaemonFlags& flags, pb::Role role, const absl::Status& status);

}  // namespace mu
