#include "worker/data/input_errors.h"

#include <errno.h>

#include "common/base/error_kind.h"
#include "common/env/errno.h"

namespace mu {
namespace {

// Errors of the path, not of what it leads to.
bool IsMissing(int error) {
  switch (error) {
    case ENOENT:
    case EACCES:
    case EPERM:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return true;
    default:
      return false;
  }
}

bool HasKind(const absl::Status& status) {
  const auto detail = DetailOf(status);
  return detail.has_value() && detail->kind() != pb::ERROR_UNSPECIFIED;
}

}  // namespace

absl::Status ErrorOfInput(const absl::Status& status, uint32_t file) {
  if (status.ok() || HasKind(status)) return status;
  if (const int error = ErrnoOf(status); error != 0) {
    return WithInputFault(
        status, IsMissing(error) ? pb::InputFault::MISSING : pb::InputFault::DEVICE, file);
  }
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return status;
    default:
      return IsMachineCode(status.code()) ? WithInputFault(status, pb::InputFault::DEVICE, file)
                                          : WithKind(status, pb::ERROR_USER, pb::ROLE_WORKER);
  }
}

absl::Status ErrorOfDevice(const absl::Status& status) {
  return HasKind(status) ? status : WithInputFault(status, pb::InputFault::DEVICE, 0);
}

}  // namespace mu
