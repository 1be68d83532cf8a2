// The error of an assignment for which nothing will make room. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mu {

// FAILED_PRECONDITION. `name`: of the variable or table.
inline absl::Status NoRoomToAssign(const std::string& name) {
  return absl::FailedPreconditionError(absl::StrCat(
      "what is assigned takes the memory in which it is kept for servers that are lost, and only a "
      "checkpoint makes room; there is none before the job has begun: call Restore() or "
      "StartFresh() before '",
      name, "' is assigned"));
}

}  // namespace mu
