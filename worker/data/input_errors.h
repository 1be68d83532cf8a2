// What an error of reading data means to the coordinator: the data is wrong (ERROR_USER), or this
// machine cannot read it and another one may (ERROR_MACHINE with an InputFault).
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace mu {

// Of reading file `file` of a dataset: a file that this machine does not see is MISSING, a
// device that fails or lacks room is DEVICE, wrong contents are ERROR_USER. An error that has
// a kind keeps it.
absl::Status ErrorOfInput(const absl::Status& status, uint32_t file);

// Of this machine's own directories and memory: DEVICE, whatever it is.
absl::Status ErrorOfDevice(const absl::Status& status);

}  // namespace mu
