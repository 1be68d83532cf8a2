#include "common/obs/tls_refusals.h"

#include <atomic>

#include "common/base/steady_now.h"
#include "common/obs/log.h"

namespace mu {

Counter* RefusedByTls(const char* port) {
  return Telemetry::Process().counter(
      "tls.refused", "Connections whose TLS handshake failed at this end", {{"port", port}});
}

void ReportRefusedByTls(const char* port, const std::string& why) {
  RefusedByTls(port)->Add();
  static std::atomic<int64_t> next_s = 0;
  const int64_t now_s = absl::ToUnixSeconds(SteadyNow());
  if (now_s < next_s.load()) return;
  next_s = now_s + 1;
  MU_LOG(WARN, "TLS: a connection was refused. {}", why);
}

}  // namespace mu
