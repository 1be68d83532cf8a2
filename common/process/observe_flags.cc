#include "common/process/observe_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/base/status.h"
#include "common/process/daemon.h"

namespace mu {

void AddLogFormatFlag(CLI::App* app, std::string* format) {
  app->add_option("--log_format,--log-format", *format,
                  "text, or json: one object a line, for what collects logs")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

void AddHttpFlag(CLI::App* app, std::string* http) {
  app->add_option("--http", *http,
                  "Serves metrics (/metrics) and health (/healthz) here: a PORT of loopback, or an "
                  "address, off loopback by HTTPS with the TLS certificates; port 0 takes a free "
                  "one (default: not at all)")
      ->type_name("[HOST:]PORT");
}

bool IsOffLoopback(const std::string& http) {
  return http.find(':') != std::string::npos && !IsLoopback(http);
}

absl::StatusOr<std::string> HttpAddress(const std::string& http, const TlsFiles& tls,
                                        bool insecure) {
  const std::string address =
      http.find(':') == std::string::npos ? absl::StrCat("127.0.0.1:", http) : http;
  if (!CheckAddress("--http", address).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--http=", Printable(http),
                     " is no address; write a port, for example 9090, or HOST:PORT"));
  }
  if (IsLoopback(address)) return address;
  MU_RETURN_IF_ERROR(CheckTlsFiles(tls, pb::ROLE_UNSPECIFIED));
  if (tls.any() || insecure) return address;
  return absl::InvalidArgumentError(
      absl::StrCat("--http=", http,
                   " is reachable from other machines, and nothing would be encrypted; add "
                   "--tls_cert, --tls_key and --tls_ca, or give a port alone for loopback, or, in "
                   "a network you trust, add --insecure"));
}

}  // namespace mu
