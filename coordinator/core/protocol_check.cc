#include "coordinator/core/protocol_check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/version.h"

namespace mu {

absl::Status CheckProtocol(const pb::RegisterRequest& request) {
  const uint32_t protocol = request.protocol();
  if (protocol >= kOldestProtocol && protocol <= kProtocol) return absl::OkStatus();
  const std::string understood =
      kOldestProtocol == kProtocol
          ? absl::StrCat("understands protocol ", kProtocol, " only")
          : absl::StrCat("understands protocols ", kOldestProtocol, " to ", kProtocol);
  return absl::FailedPreconditionError(absl::StrCat(
      "the ", request.role() == pb::ROLE_WORKER ? "worker" : "server", " at ", request.address(),
      " is of Muster ",
      request.version().empty() ? "from before there were versions" : request.version(),
      " (protocol ", protocol, "), and the coordinator of Muster ", Version(), " ", understood,
      "; use the same build of coordinator, worker and psserver on all machines"));
}

}  // namespace mu
