// Who is at fault when a restore of the servers fails. Errors are read by
// coordinator/cluster/restore_errors.h.
#pragma once

namespace mu {

enum class RestoreFault {
  kCheckpoint,  // its files are damaged or missing: an older checkpoint is used
  kServer,      // the server in the error's detail cannot read files that are there: it is replaced
  kTryAgain,    // a machine or the network failed: another try may succeed
  kFatal,       // neither another try nor another checkpoint will help
};

}  // namespace mu
