// Connections that TLS refused: counted for /metrics, told in the log.
#pragma once

#include <string>

#include "common/obs/telemetry.h"

namespace mu {

// Of the port for calls or the one for HTTP ("rpc", "http"). Call it when the port opens, too, so
// that a rate sees the first refusal.
Counter* RefusedByTls(const char* port);

// Counts one, and says why in the log; at most once a second, since whoever knocks all the time
// must not fill the disk. Thread safe.
void ReportRefusedByTls(const char* port, const std::string& why);

}  // namespace mu
