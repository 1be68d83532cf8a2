#include "coordinator/cluster/restore_errors.h"

#include "absl/strings/str_cat.h"
#include "common/base/cannot_read.h"
#include "common/base/status.h"
#include "coordinator/cluster/checkpoint_manifest.h"

namespace mu {

RestoreFault FaultOf(const absl::Status& restored) {
  if (IsCannotRead(restored)) {
    return DetailOf(restored)->role() == pb::ROLE_PSSERVER ? RestoreFault::kServer
                                                           : RestoreFault::kTryAgain;
  }
  if (IsBadCheckpoint(restored)) return RestoreFault::kCheckpoint;
  const pb::ErrorKind kind = KindOf(restored);
  return kind == pb::ERROR_MACHINE || kind == pb::ERROR_STALE ? RestoreFault::kTryAgain
                                                              : RestoreFault::kFatal;
}

absl::Status AfterLook(const absl::Status& restored, const absl::Status& seen) {
  if (seen.ok()) {
    absl::Status at_fault(restored.code(),
                          absl::StrCat(restored.message(),
                                       "; the coordinator sees all files of this checkpoint, so "
                                       "the server is at fault"));
    return WithDetail(std::move(at_fault), *DetailOf(restored));
  }
  if (IsBadCheckpoint(seen)) return seen;
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_MACHINE);
  return WithDetail(
      absl::UnavailableError(absl::StrCat("neither a server nor the coordinator can read the "
                                          "checkpoint's files: ",
                                          restored.message(), "; ", seen.message())),
      detail);
}

}  // namespace mu
