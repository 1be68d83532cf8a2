// Who may call what, by the names in certificates. The one place where that is written.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status.h"

namespace mu {

// Roles that may call this method ("/muster.Worker/Run"); none for a method that nobody knows.
std::vector<pb::Role> CallersOf(const std::string& method);

// OK if one of the names, which a caller's certificate has, is that of a role that may.
// PERMISSION_DENIED, the kind ERROR_USER, with both.
absl::Status CheckAccess(const std::string& method, const std::vector<std::string>& names);

}  // namespace mu
