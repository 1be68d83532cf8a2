// Who is at fault when a restore of the servers fails: pure rules over the errors.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/restore_fault.h"

namespace mu {

RestoreFault FaultOf(const absl::Status& restored);

// A server could not read a checkpoint's files (IsCannotRead(restored)), so the coordinator has
// looked at them itself and `seen` is what CheckSizes said. Returns the error to go on with: the
// server's if the files are there, the checkpoint's if they are not, UNAVAILABLE (ERROR_MACHINE) if
// the coordinator cannot look either.
absl::Status AfterLook(const absl::Status& restored, const absl::Status& seen);

}  // namespace mu
