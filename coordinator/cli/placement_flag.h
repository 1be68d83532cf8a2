// --placement: which server gets which partition of a job that is trained.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/sharding/placement.h"
#include "coordinator/cli/options.h"
#include "coordinator/cli/problem_list.h"
#include "coordinator/training/train_job.h"

namespace mu {

// "bytes" (or nothing), "round_robin", or "load=FILE": a report of an earlier run of the job, whose
// `variables` say how many bytes of each were read and updated. INVALID_ARGUMENT for another text
// and for a file that is no such report; what the file system says of one that cannot be read.
absl::StatusOr<Placement> ParsePlacement(const std::string& text);

// The file that such a text names; empty: none.
std::string PlacementFile(const std::string& text);

// That of the command line; what is wrong with it goes to `problems`.
void SettlePlacement(const CliOptions& cli, RunOptions* options, ProblemList* problems);

}  // namespace mu
