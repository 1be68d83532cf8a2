#include "coordinator/core/call_error.h"

#include <utility>

#include "common/base/caller_gone.h"
#include "common/base/error_kind.h"
#include "common/client/applied_full.h"

namespace mu {

CallError CallError::Of(absl::Status status) {
  CallError error;
  if (!status.ok()) {
    error.kind = KindOf(status);
    error.input = InputFaultOf(status);
    error.applied_full = IsAppliedFull(status);
    error.caller_gone = IsCallerGone(status);
    if (const auto detail = DetailOf(status)) {
      error.role = detail->role();
      error.index = detail->index();
      error.epoch = CoordinatorEpoch(detail->epoch());
    }
  }
  error.status = std::move(status);
  return error;
}

}  // namespace mu
