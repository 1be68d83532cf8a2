// Takes checkpoints now and then while functions run, keeps the newest few, and makes a job survive
// the loss of servers.
//
//   Checkpointer checkpointer(coordinator, {.directory = job_dir + "/checkpoints",
//                                           .every = absl::Minutes(5)});
//   ... schedule ...
//   MU_RETURN_IF_ERROR(checkpointer.TakeWhole().status());
//
// A checkpoint that fails (a full disk) is logged and counted, and training goes on; the earlier
// ones stay; options.on_warning says so. When so many fail that functions have to wait
// (cluster/update_pause.h), they are tried again every second, later every 30 seconds, until one
// succeeds. Thread safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/training/checkpoint_retry.h"
#include "coordinator/training/checkpoint_trouble.h"

namespace mu {

struct CheckpointerOptions {
  std::string directory;
  absl::Duration every = absl::Minutes(5);  // InfiniteDuration: not by time
  uint64_t every_steps = 0;                 // 0: not by steps
  // What a loss of servers makes run again has to be remembered: a checkpoint is due when that
  // takes more than so many bytes, values of assignments included, and at most one a second. Half a
  // million small functions fit. When four times as many are kept, because checkpoints fail or
  // take long, functions that change parameters wait, and so do assignments.
  uint64_t most_uncovered_bytes = uint64_t{256} << 20;
  // Or when there are more than so many functions, to bound what a loss makes run again. 0: any
  // number.
  size_t most_uncovered = 0;
  int keep = 3;  // complete checkpoints; older ones are deleted. 0: all
  // Each change asks for a checkpoint now. May be null.
  const std::atomic<uint64_t>* requests = nullptr;
  RecoveryMode recovery = RecoveryMode::kAll;
  // May fill in the user's state, for jobs that do not give it with their calls. A checkpoint that
  // is taken because a server leaves asks nobody: it has what came with calls.
  std::function<void(pb::CheckpointProto*)> describe = nullptr;
  // Steps of the job, for every_steps; null: those of all functions. On any thread.
  std::function<uint64_t()> steps = nullptr;
  // When a checkpoint is complete, before older ones are deleted, on the thread that took it.
  std::function<void(const pb::CheckpointProto& manifest)> before_pruning = nullptr;
  // After each checkpoint, on the thread that took it. Others wait for its end, as for those above.
  std::function<void(const std::string& directory)> on_taken = nullptr;
  // That checkpoints fail, once for each cause, and that they succeed again: a sentence, which is
  // in the log as well (checkpoint_trouble.h). On the thread that took it. Not of TakeNow and
  // TakeWhole, which return their errors.
  std::function<void(const std::string& warning)> on_warning = nullptr;
};

class Checkpointer {
 public:
  // Enables the coordinator's recovery. The coordinator must outlive this.
  Checkpointer(Coordinator* coordinator, CheckpointerOptions options);
  ~Checkpointer();  // waits for a checkpoint under way; takes no other

  // The directory of the new checkpoint. FAILED_PRECONDITION from a callback of the options, which
  // is part of taking one: ask for the next with `requests`.
  absl::StatusOr<std::string> TakeNow();
  // The same of what a program ends with: joins, and takes one that holds all of it. A server that
  // is lost in between, or while it is saved, has made finished functions run again: another one is
  // taken after them, as after one that a server's leave has ended. The error of Join.
  // FAILED_PRECONDITION as TakeNow.
  //
  // `look` is called several times a second while it joins: CANCELLED where it returns false.
  absl::StatusOr<std::string> TakeWhole(const std::function<bool()>& look = nullptr);
  // That error.
  absl::Status CheckIsNoCallback() const ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string& directory() const { return options_.directory; }
  uint64_t taken() const;
  uint64_t failed() const;

 private:
  class Taker;
  void Run();
  void TakeIfDue();
  // `beside`: see Coordinator::CheckpointBeside.
  absl::StatusOr<std::string> Take(bool beside) ABSL_EXCLUSIVE_LOCKS_REQUIRED(taking_);
  uint64_t Requests() const;
  uint64_t Steps() const;
  bool Due() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Warn(const std::string& warning) const ABSL_LOCKS_EXCLUDED(mutex_);

  Coordinator* const coordinator_;
  const CheckpointerOptions options_;
  Mutex taking_;  // one checkpoint at a time; before mutex_
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t answered_ ABSL_GUARDED_BY(mutex_) = 0;  // of options_.requests
  absl::Time last_time_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_steps_ ABSL_GUARDED_BY(mutex_) = 0;
  CheckpointRetry retry_ ABSL_GUARDED_BY(mutex_);
  CheckpointTrouble trouble_ ABSL_GUARDED_BY(mutex_);
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread::id taker_ ABSL_GUARDED_BY(mutex_);  // who holds taking_; none: nobody
  std::thread thread_;
};

}  // namespace mu
