#include "coordinator/training/exit_code.h"

#include "common/base/error_kind.h"

namespace mu {

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  const pb::ErrorKind kind = KindOf(status);
  const auto detail = DetailOf(status);
  if (kind == pb::ERROR_MACHINE || kind == pb::ERROR_STALE) return kExitMachines;
  // Disks that are full and files that break are the machines' too, whoever met them first.
  if (status.code() == absl::StatusCode::kResourceExhausted ||
      status.code() == absl::StatusCode::kInternal) {
    // But a tensor that an op makes too large is the function's.
    return detail.has_value() && kind == pb::ERROR_USER && !detail->op().empty()
               ? kExitFunctionFailed
               : kExitMachines;
  }
  // Data that no worker sees is the job's fault, whichever function met it.
  if (InputFaultOf(status).kind() == pb::InputFault::MISSING) return kExitBadJob;
  const bool in_function =
      detail.has_value() && (!detail->function().empty() || !detail->op().empty());
  return in_function ? kExitFunctionFailed : kExitBadJob;
}

}  // namespace mu
