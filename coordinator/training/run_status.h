// Whether a run is over, for whoever follows its checkpoints from another process.
//
// A program's trainer says so in RUN/run.json; a job's session says so in RUN/job.json
// (job_record.h). Where there are both, run.json is newer: a session removes it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mu {

// Done, or failed for good: no checkpoint comes any more. A run that was stopped, or whose machines
// failed, is still running: somebody may continue it.
enum class RunStatus { kRunning, kDone, kFailed };

// RUN of the folder RUN/checkpoints. Empty for a folder of another name: it is no run's, and nobody
// can follow it.
std::string RunOfCheckpointFolder(const std::string& folder);

// Writes RUN/run.json, at once or not at all. Where kRunning cannot be written, a run.json that
// says that the run is over is removed. For programs with a loop of their own: mu::Trainer does it.
absl::Status MarkRun(const std::string& run, RunStatus status);
// From now on the record of a job says it.
absl::Status UnmarkRun(const std::string& run);
// Whether RUN/run.json is there: a program has trained in RUN since a job did, if one did.
bool IsMarkedRun(const std::string& run);

// False if nothing in RUN says so. DATA_LOSS if the file that would say it is empty or damaged,
// which it is not while it is written; an error of the file system if it cannot be read.
absl::StatusOr<bool> ReadRunIsOver(const std::string& run);
// The same; false on an error.
bool RunIsOver(const std::string& run);

}  // namespace mu
