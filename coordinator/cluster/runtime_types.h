// What the runtime and those who use it hand to each other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "coordinator/cluster/job_checkpoints.h"
#include "coordinator/cluster/remote_value.h"
#include "coordinator/core/failure_log.h"
#include "coordinator/core/server_task.h"
#include "coordinator/core/staleness_counts.h"
#include "proto/checkpoint.pb.h"
#include "proto/psserver.pb.h"

namespace mu {

// A task that a caller waits for (core/server_task.h), with what the core need not know. The caller
// fills it in, the runtime's threads use it one after the other, then it is the caller's again.
struct TaskState {
  // kSave: makes the folder; what is in it is removed by `clean` if the checkpoint fails. Both may
  // block.
  std::function<absl::StatusOr<std::string>()> claim;
  std::function<void(const std::string& folder)> clean;
  std::string folder;  // of kLoad and kSave
  // kLoad: if `folder` may be renamed meanwhile, what it is called now; null: it is not.
  std::shared_ptr<const JobCheckpoints::Held> held;
  // kLoad: what is in the folder. kSave: what the caller says in it, at last all of it.
  pb::CheckpointProto manifest;
  // kLoad: what is taken over with the values.
  std::shared_ptr<const ResumePoint> point;
  // kLoad: of another job's checkpoint, what this one begins with; null: everything.
  std::shared_ptr<const pb::TakenValuesProto> take;
  std::map<FunctionId, std::shared_ptr<FunctionState>> unfinished;  // its functions

  bool done = false;
  absl::Status status;
  uint64_t generation = 0;  // of the servers' state, when it was done
};

// A checkpoint that a group of functions reads.
struct ViewFiles {
  std::shared_ptr<const JobCheckpoints::Held> held;  // as long as it may have to be loaded
  pb::CheckpointProto manifest;
};

// What a job has done and who is there, in numbers that cost nothing to look at.
struct RuntimeCounts {
  uint64_t functions = 0;  // finished
  uint64_t runs = 0;       // of functions, sent to workers
  uint64_t steps = 0;
  uint64_t samples = 0;
  uint64_t bad_records = 0;
  size_t workers_ready = 0;
  size_t servers = 0;
  size_t unfinished = 0;
  bool updates_paused = false;  // see update_pause.h
};

struct RuntimeStats : RuntimeCounts {
  // Of the whole job, of functions that change variables or tables: what a checkpoint of all of it
  // says in its position. Results count here before those who wait for whole functions see them.
  uint64_t trained_samples = 0;
  std::string first_bad_record;
  std::vector<MemberFailure> failures;
  UnlistedFailures unlisted_failures;
  double without_progress_seconds = 0;  // see FailureList
  BackupRuns backup_runs;
  StalenessCounts staleness;
  RoundCounts rounds;
  uint64_t waited_for_steps = 0;  // functions, see Coordinator::BoundStaleness
  // That have had their results and run again, since a server was lost, but have not yet.
  uint64_t steps_to_repeat = 0;
  std::vector<std::string> warnings;  // what deserves a look of the user, each sentence once
};

}  // namespace mu
