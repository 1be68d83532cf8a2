// Callers that a process refuses by their certificates: counted for /metrics, told in the log, at
// most once a second, since whoever knocks all the time must not fill the disk.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/obs/telemetry.h"

namespace mu {

// Of the port for calls or the one for HTTP ("rpc", "http"). Call it when the port opens, too, so
// that a rate sees the first refusal.
Counter* RefusedByTls(const char* port);

// Counts one, and says why in the log. Thread safe.
void ReportRefusedByTls(const char* port, const std::string& why);

// Says in the log that a call was refused, of a caller at `peer` whose certificate is of another
// role. Thread safe.
void ReportRefusedRole(const absl::Status& why, const std::string& peer);

}  // namespace mu
