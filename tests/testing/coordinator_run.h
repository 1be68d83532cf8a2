// Runs the `coordinator` program as a user does and reads its report.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tests/testing/wait.h"

namespace mu::testing {

struct CoordinatorRun {
  int exit_code = -1;
  std::string output;     // stdout and stderr
  nlohmann::json report;  // null if none was asked for or written
};

// `args` come after the program's name. With `directory` (an existing folder of the test's own), a
// --report in it is asked for and read. DEADLINE_EXCEEDED, with the output so far, if the run takes
// longer than `timeout`; it is then killed.
absl::StatusOr<CoordinatorRun> RunCoordinator(std::vector<std::string> args,
                                              const std::string& directory, bool with_report,
                                              absl::Duration timeout = kRunPatience);

// MUSTER_DATA, or ../shared/data if that is there; empty: the test should skip and say so.
std::string DataDirectory();

}  // namespace mu::testing
