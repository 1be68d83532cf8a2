#include "coordinator/core/restore_fault.h"

#include "absl/strings/str_cat.h"
#include "common/base/cannot_read.h"
#include "common/base/error_kind.h"
#include "coordinator/core/protections.h"

namespace mu {

RestoreFault FaultOf(const CallError& restored) {
  if (IsCannotRead(restored.status)) {
    return restored.role == pb::ROLE_PSSERVER ? RestoreFault::kServer : RestoreFault::kTryAgain;
  }
  if (IsBadCheckpoint(restored.status)) return RestoreFault::kCheckpoint;
  return restored.passing() ? RestoreFault::kTryAgain : RestoreFault::kFatal;
}

CallError AfterRename(CallError restored, const std::string& renamed) {
  if (renamed.empty() || MU_BROKEN(renamed_load)) return restored;
  return CallError::Of(absl::UnavailableError(
      absl::StrCat("the checkpoint ", renamed, " has been renamed while it was loaded")));
}

absl::Status AfterLook(const absl::Status& restored, const absl::Status& seen) {
  if (seen.ok()) {
    return WithDetail(
        absl::Status(restored.code(),
                     absl::StrCat(restored.message(),
                                  "; the coordinator sees all files of this checkpoint, so the "
                                  "server is at fault")),
        *DetailOf(restored));
  }
  if (IsBadCheckpoint(seen)) return seen;
  return WithKind(absl::UnavailableError(absl::StrCat(
                      "neither a server nor the coordinator can read the checkpoint's files: ",
                      restored.message(), "; ", seen.message())),
                  pb::ERROR_MACHINE);
}

}  // namespace mu
