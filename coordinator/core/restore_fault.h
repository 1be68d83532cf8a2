// Who is at fault when a restore of the servers fails: pure rules over the errors.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/core/call_error.h"

namespace mu {

enum class RestoreFault {
  kCheckpoint,  // its files are damaged or missing: an older checkpoint is used
  kServer,      // the server in the error's detail cannot read files that are there: it is replaced
  kTryAgain,    // a machine or the network failed: another try may succeed
  kFatal,       // neither another try nor another checkpoint will help
};

// Whether this error of a restore is about the files: no other try will find them different. (A
// process that cannot open or read a file says nothing of it, see common/base/cannot_read.h.)
inline bool IsBadCheckpoint(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status);
}

RestoreFault FaultOf(const CallError& restored);

// What servers found in a folder that has been renamed meanwhile (`renamed`: what it was called; or
// empty) may have been another checkpoint, even if they could load it. Returns the error to go on
// with: another try finds the folder under its new name.
CallError AfterRename(CallError restored, const std::string& renamed);

// A server could not read a checkpoint's files (IsCannotRead(restored)), so the coordinator has
// looked at them itself and `seen` is what CheckSizes said. Returns the error to go on with: the
// server's if the files are there, the checkpoint's if they are not, UNAVAILABLE (ERROR_MACHINE) if
// the coordinator cannot look either.
absl::Status AfterLook(const absl::Status& restored, const absl::Status& seen);

}  // namespace mu
