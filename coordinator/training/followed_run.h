// The checkpoints of a run that another process trains, one after the other, each once: for an
// evaluation beside training (`coordinator eval --follow`, follow.h).
//
// What has been evaluated is written down in DIR/evaluations.json after each, so a process that is
// started again goes on. A checkpoint that waits is in DIR/followed: this process holds it there by
// hard links, and the run moves there what it would delete (cluster/followed_checkpoints.h). So
// none is missed while this process evaluates, starts its cluster, or is down. One thread. One
// process for a run: it holds a lock, DIR/followed/lock, for as long as it follows.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/env/file_lock.h"
#include "coordinator/training/training_history.h"

namespace mu {

// The run's directory, of that or of its folder of checkpoints.
std::string DirectoryOfFollowedRun(const std::string& directory);

// All return FAILED_PRECONDITION, which names the process, if another one follows the run. Open
// says so, and later calls if somebody has removed DIR/followed and another process was first to
// lock it again.
class FollowedRun {
 public:
  // `directory`: the run's job_dir, or its folder of checkpoints. It need not be there yet.
  // `on_warning`, on the thread of Next: it cannot be read whether the run is over, so the end of
  // the following may never come. Once, and again when there is another reason. `on_wait`, on the
  // same thread: neither a checkpoint nor a record of a run is there, so this process waits. Once.
  // What has no callback is in the log.
  explicit FollowedRun(const std::string& directory,
                       std::function<void(const std::string&)> on_warning = nullptr,
                       std::function<void(const std::string&)> on_wait = nullptr);

  // Begins to follow: from now on the run deletes nothing that waits, and nobody else follows it.
  // Reads what has been evaluated; returns where that is written. DATA_LOSS if it cannot be read.
  // If the directory is not there, makes nothing, since the name may be misspelt: Next begins when
  // it is there.
  absl::StatusOr<std::string> Open();
  // The folder of the oldest checkpoint that has not been evaluated. Waits for one; empty if there
  // is none and the run is over (run_status.h), which ends the following. CANCELLED if `stop` asks
  // for it.
  absl::StatusOr<std::string> Next(const std::atomic<int>* stop);
  // That one has been evaluated, or cannot be: the error is DATA_LOSS or NOT_FOUND, and its files
  // are not as they were written. Or it is gone. Another error is returned, and the checkpoint is
  // still to be evaluated.
  absl::Status Add(const std::string& folder, absl::StatusOr<Evaluation> evaluated);

  // All that is written down, oldest first.
  const std::vector<Evaluation>& evaluations() const { return evaluations_; }

 private:
  // What Open does, unless this process holds the lock. Without the directory it is OK and does not
  // hold it.
  absl::Status Begin();
  absl::Status TakeLock();
  absl::Status ReadRecord();
  // Nobody follows any more.
  void End();
  std::string HeldFolder(const std::string& name) const;
  // Takes hold of what is new.
  absl::Status Hold();
  absl::StatusOr<std::vector<std::string>> Held() const;  // names, oldest first
  absl::Status Write() const;
  // Until the next look.
  void Wait();
  // `look`: whether it could be read that the run is over. After each look.
  void WarnOf(const absl::Status& look);

  const std::string directory_;
  const std::function<void(const std::string&)> on_warning_, on_wait_;
  FileLock lock_;
  std::vector<Evaluation> evaluations_;
  std::set<std::string> seen_;  // names of checkpoints that need not be looked at again
  // Of the last look whether the run is over, and of the last warning; empty: none.
  std::string error_, told_error_;
  bool told_wait_ = false;
};

}  // namespace mu
