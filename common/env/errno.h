// The errno behind an error of this folder.
#pragma once

#include "absl/status/status.h"

namespace mu {

// Of an error that ErrnoToStatus made, however annotated since; 0 of another.
int ErrnoOf(const absl::Status& status);

}  // namespace mu
