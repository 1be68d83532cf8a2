// What a job says that is right, but may not do what its author expects. Pure.
#pragma once

#include <string>
#include <vector>

#include "coordinator/cli/job_validation.h"

namespace mu {

// Each "KEY: a sentence", for a job that is trained or checked; none for other uses. What is wrong
// with the job is told elsewhere (ValidateJob).
std::vector<std::string> JobNotes(const muster::JobProto& job, JobUse use);

}  // namespace mu
