#include "common/env/host_port.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mu {

absl::StatusOr<HostPort> SplitHostPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostPort result;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &result.port) || result.port < 0 ||
      result.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("address '", address, "' is not HOST:PORT with a port of 0 to 65535"));
  }
  result.host = address.substr(0, colon);
  if (result.host.size() > 2 && result.host.front() == '[' && result.host.back() == ']') {
    result.host = result.host.substr(1, result.host.size() - 2);
  } else if (result.host.find(':') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("address '", address,
                     "' is not HOST:PORT: an IPv6 address is written in brackets, [::1]:7000"));
  }
  return result;
}

std::string JoinHostPort(const std::string& host, int port) {
  const bool six = host.find(':') != std::string::npos;
  return six ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

}  // namespace mu
