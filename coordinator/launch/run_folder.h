// The folder of a run whose program names none.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace mu {

// Makes PARENT/NAME-TIME-PID and returns its absolute path; of several that begin within a second
// the later ones have a number behind it. Nobody else has it, in whatever process.
absl::StatusOr<std::string> MakeRunFolder(const std::string& parent, const std::string& name,
                                          absl::Time now);

}  // namespace mu
