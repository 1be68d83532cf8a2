// Which checkpoints of a trainer stay, however many newer ones there are: those that it needs now,
// and those that the newest complete one names. A job that stops goes on from that one and looks
// for them, whatever this process has found out since. Thread safe.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "coordinator/training/training_history.h"

namespace mu {

class KeptCheckpoints {
 public:
  // Those below `folder`.
  explicit KeptCheckpoints(std::string folder) : folder_(std::move(folder)) {}

  // Marks those with these names and those that the newest one names, and takes the marks from
  // others. `best`: what of a state counts, beside the evaluation that is pending. Returns the
  // first error, after all were tried.
  absl::Status Need(std::set<std::string> names, TrainingHistory::Best best)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A checkpoint is complete, or was gone on from, that holds this state of the job. Call it before
  // older ones are deleted. Until the first Need it takes no mark away.
  absl::Status Complete(TrainingHistory state) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Mark() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  Mutex mutex_;
  bool known_ ABSL_GUARDED_BY(mutex_) = false;  // what is needed
  std::set<std::string> needed_ ABSL_GUARDED_BY(mutex_);
  TrainingHistory::Best best_ ABSL_GUARDED_BY(mutex_);
  TrainingHistory newest_ ABSL_GUARDED_BY(mutex_);  // of the newest complete one
};

}  // namespace mu
