#include "coordinator/training/exit_code.h"

#include "common/base/error_kind.h"

namespace mu {

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  const pb::ErrorKind kind = KindOf(status);
  const auto detail = DetailOf(status);
  if (kind == pb::ERROR_STALE && detail.has_value() && detail->epoch() > 0) return kExitSuperseded;
  if (kind == pb::ERROR_MACHINE || kind == pb::ERROR_STALE) return kExitMachines;
  // Disks that are full and files that break are the machines' too, whoever met them first. But a
  // limit that the job exceeds (memory, functions), or a tensor that an op makes too large, is the
  // job's.
  const bool told = detail.has_value() && detail->kind() == pb::ERROR_USER;
  if (status.code() == absl::StatusCode::kResourceExhausted &&
      (!told || InputFaultOf(status).kind() != pb::InputFault::NONE))
    return kExitMachines;
  if (status.code() == absl::StatusCode::kInternal && (!told || detail->op().empty()))
    return kExitMachines;
  // Data that no worker sees is the job's fault, whichever function met it.
  if (InputFaultOf(status).kind() == pb::InputFault::MISSING) return kExitBadJob;
  const bool in_function =
      detail.has_value() && (!detail->function().empty() || !detail->op().empty());
  return in_function ? kExitFunctionFailed : kExitBadJob;
}

}  // namespace mu
