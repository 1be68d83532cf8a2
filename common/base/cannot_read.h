// The error of a process that cannot open or read a file: it says nothing of the file, which other
// processes may be able to read, and no other try in this process will do.
//
// FAILED_PRECONDITION with ERROR_MACHINE, whatever the system says (no such file, no permission, an
// error of the disk); no other error has this code and this kind.
#pragma once

#include "absl/status/status.h"
#include "common/base/status.h"

namespace mu {

// The error of a file operation as such an error.
inline absl::Status CannotRead(const absl::Status& error) {
  pb::ErrorDetail detail = DetailOf(error).value_or(pb::ErrorDetail());
  detail.set_kind(pb::ERROR_MACHINE);
  return WithDetail(absl::FailedPreconditionError(error.message()), detail);
}

inline bool IsCannotRead(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && KindOf(status) == pb::ERROR_MACHINE;
}

}  // namespace mu
