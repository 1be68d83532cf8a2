// "HOST:PORT", as addresses are written everywhere.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mu {

struct HostPort {
  std::string host;  // as a resolver takes it: "::1" of "[::1]:80"
  int port = 0;      // 0: any
};

// INVALID_ARGUMENT naming the text: it has no host, or no port of 0 to 65535, or a host with colons
// without brackets: of "fd00::5" nobody knows whether 5 is a port.
absl::StatusOr<HostPort> SplitHostPort(const std::string& address);

// The reverse, with brackets where a host has colons.
std::string JoinHostPort(const std::string& host, int port);

}  // namespace mu
