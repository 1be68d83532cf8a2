#include "common/rpc/access.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/error_kind.h"
#include "common/env/tls_files.h"

namespace mu {

std::vector<pb::Role> CallersOf(const std::string& method) {
  // What only looks harms nobody.
  if (method == "/muster.Coordinator/GetStatus" ||
      absl::StartsWith(method, "/grpc.health.v1.Health/"))
    return {pb::ROLE_COORDINATOR, pb::ROLE_WORKER, pb::ROLE_PSSERVER};
  if (absl::StartsWith(method, "/muster.Coordinator/")) return {pb::ROLE_WORKER, pb::ROLE_PSSERVER};
  if (method == "/muster.PsServer/Pull" || method == "/muster.PsServer/Push")
    return {pb::ROLE_COORDINATOR, pb::ROLE_WORKER};
  if (absl::StartsWith(method, "/muster.PsServer/") || absl::StartsWith(method, "/muster.Worker/"))
    return {pb::ROLE_COORDINATOR};
  return {};
}

absl::Status CheckAccess(const std::string& method, const std::vector<std::string>& names) {
  std::vector<std::string> wanted;
  for (const pb::Role role : CallersOf(method)) {
    wanted.push_back(TlsNameOf(role));
    if (std::find(names.begin(), names.end(), wanted.back()) != names.end())
      return absl::OkStatus();
  }
  return WithKind(
      absl::PermissionDeniedError(absl::StrCat(
          method, " is for certificates of ",
          wanted.empty() ? "nobody" : absl::StrJoin(wanted, " and "), "; the caller's is of ",
          names.empty() ? "nobody" : absl::StrJoin(names, ", "))),
      pb::ERROR_USER, pb::ROLE_UNSPECIFIED);
}

}  // namespace mu
