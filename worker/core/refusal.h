// The errors with which a worker refuses or ends what it is asked for.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/base/status.h"

namespace mu {

// FAILED_PRECONDITION of `kind`, about a worker.
absl::Status WorkerRefusal(pb::ErrorKind kind, const std::string& message);
// UNAVAILABLE (ERROR_MACHINE): the worker does not know its job yet.
absl::Status NotRegistered();
// CANCELLED (ERROR_STALE), for the runs of a coordinator whose time is over.
absl::Status TakenOver(uint64_t epoch);

}  // namespace mu
