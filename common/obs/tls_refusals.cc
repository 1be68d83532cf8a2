#include "common/obs/tls_refusals.h"

#include <atomic>

#include "common/base/steady_now.h"
#include "common/obs/log.h"

namespace mu {
namespace {

// False within a second of the last line of this kind.
bool MayTell(std::atomic<int64_t>* next_s) {
  const int64_t now_s = absl::ToUnixSeconds(SteadyNow());
  if (now_s < next_s->load()) return false;
  *next_s = now_s + 1;
  return true;
}

}  // namespace

Counter* RefusedByTls(const char* port) {
  return Telemetry::Process().counter(
      "tls.refused", "Connections whose TLS handshake failed at this end", {{"port", port}});
}

void ReportRefusedByTls(const char* port, const std::string& why) {
  RefusedByTls(port)->Add();
  static std::atomic<int64_t> next_s = 0;
  if (MayTell(&next_s)) MU_LOG(WARN, "TLS: a connection was refused. {}", why);
}

void ReportRefusedRole(const absl::Status& why, const std::string& peer) {
  static std::atomic<int64_t> next_s = 0;
  if (MayTell(&next_s)) MU_LOG(WARN, "TLS: a call of {} was refused. {}", peer, why);
}

}  // namespace mu
