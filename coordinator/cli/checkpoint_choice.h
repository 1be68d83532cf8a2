// Which checkpoint a command takes: what --checkpoint names, the newest of a run's directory, or
// the newest of all runs of the job below ./runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/cli/options.h"
#include "coordinator/cli/problem_list.h"
#include "coordinator/training/job_record.h"
#include "proto/job.pb.h"

namespace mu {

inline constexpr char kRunsFolder[] = "runs";  // in the current directory

// A run of a job that has a checkpoint.
struct RunOfJob {
  std::string directory;
  std::vector<std::string> checkpoints;  // complete, the newest first; never empty
  int64_t written_ns = 0;                // when the newest one was complete, since 1970
  std::optional<JobRecord> record;       // nullopt: it has none that can be read, or is a program's
};

// The runs of job `name` in the folder `runs`, the one with the newest checkpoint first. A folder
// holds such a run if its job.json says so, whatever the folder is called. One without a job.json
// that can be read does if it is called NAME-DATE-TIME.
std::vector<RunOfJob> RunsOfJob(const std::string& runs, const std::string& name);

struct CheckpointCandidates {
  std::vector<std::string> paths;  // the one to take first; never empty
  size_t runs = 1;                 // that they are of
};

// What a user names: one checkpoint, or all of a run, the newest first. NOT_FOUND: there is none.
absl::StatusOr<CheckpointCandidates> CandidatesAt(const std::string& path);

// What `cli` names for a job that is not trained: with --checkpoint, with the run's directory, or
// else those of all of the job's runs below ./runs, run by run. NOT_FOUND: there is none.
absl::StatusOr<CheckpointCandidates> CandidatesOf(const CliOptions& cli,
                                                  const muster::JobProto& job);

// What to name in place of a damaged checkpoint, for a problem of `place`; empty: there is nothing.
std::string InsteadOf(const std::string& damaged, const Place& place);

// The first of the candidates that is not damaged, as far as its manifest and the sizes of its
// files tell, and that `fits` the model (INVALID_ARGUMENT: it does not). `notes` gets why it is not
// the first one, or which of several runs it is of. Empty: none is right, which `problems` gets.
std::string ChooseCheckpoint(const CheckpointCandidates& candidates, const Place& place,
                             const std::function<absl::Status(const std::string&)>& fits,
                             std::vector<std::string>* notes, ProblemList* problems);

}  // namespace mu
