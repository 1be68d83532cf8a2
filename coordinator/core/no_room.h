// Errors of assignments, and of what is repeated before them, for which nothing will make room.
// Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {

// FAILED_PRECONDITION. `name`: of the variable or table.
inline absl::Status NoRoomToAssign(const std::string& name) {
  return absl::FailedPreconditionError(absl::StrCat(
      "what is assigned takes the memory in which it is kept for servers that are lost, and only a "
      "checkpoint makes room; there is none before the job has begun: call Restore() or "
      "StartFresh() before '",
      name, "' is assigned"));
}

// `full`: with what a server refused it. Its code and details, so the kind stays the machine's.
inline absl::Status NoRoomForRepeats(const absl::Status& full) {
  return Annotate(full,
                  "what is repeated up to an assignment needs more memory than a server has for it "
                  "(psserver --applied_memory)");
}

}  // namespace mu
