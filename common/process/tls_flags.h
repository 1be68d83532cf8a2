// The flags of mutual TLS, and who may listen where. See docs/security.md.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/env/tls_files.h"

namespace CLI {
class App;
}

namespace mu {

void AddTlsFlags(CLI::App* app, TlsFiles* files);

// INVALID_ARGUMENT, beginning with the flag at fault: the address is none, or one off loopback with
// neither TLS nor --insecure, or the files do not suit the role.
absl::Status CheckListening(const std::string& listen, const TlsFiles& tls, bool insecure,
                            pb::Role role);

}  // namespace mu
