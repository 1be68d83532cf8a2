// The flags by which a process is observed: --http, the port for metrics and health, and
// --log_format.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/env/tls_files.h"

namespace CLI {
class App;
}

namespace mu {

// --log_format; see ParseLogFormat (common/obs/log.h).
void AddLogFormatFlag(CLI::App* app, std::string* format);

void AddHttpFlag(CLI::App* app, std::string* http);

// Whether --http is given, and other machines reach it.
bool IsOffLoopback(const std::string& http);

// "127.0.0.1:9090" of "9090"; "HOST:PORT" as it is. INVALID_ARGUMENT, beginning with the flag: it
// is neither, or off loopback with neither TLS nor --insecure.
absl::StatusOr<std::string> HttpAddress(const std::string& http, const TlsFiles& tls,
                                        bool insecure);

}  // namespace mu
