// The runs of a worker: executed one after the other on one thread, in the order in which they were
// dispatched, although the transport may hand them over in another one. Runs that name no order are
// executed as they arrive.
//
// Thread safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "worker/function_run.h"

namespace mu {

class RunQueue {
 public:
  // `execute` runs on the queue's thread; it finishes the run's call, and ends early once the run
  // is stopped. A run whose predecessor has not arrived waits for it, but no longer than
  // `patience`: it may have been lost on its way.
  explicit RunQueue(std::function<void(FunctionRun&)> execute,
                    absl::Duration patience = absl::Seconds(1));
  ~RunQueue();  // Shutdown()

  // A run of a function that was cancelled before it arrived, or that comes after Drain or
  // Shutdown, is finished at once.
  void Add(std::shared_ptr<FunctionRun> run);
  // A run that is not added, since it was refused: nothing has to wait for it.
  void Refused(uint64_t run);

  // Ends every run with an id below `below`, also those that arrive later; `done` is called, from
  // any thread, when none of them is in execution any more.
  void CancelBelow(uint64_t below, std::function<void()> done);

  // The servers went back to an older state: functions that were cancelled before may be repeated
  // now. (What still comes of the cancelled runs, the servers refuse.)
  void ForgetCancelled();

  // A new epoch: every run so far is ended with `why`, and ids start afresh.
  void Reset(const absl::Status& why);

  // The running step is the last; every run, also a later one, is handed back with what it lacks.
  // What the running step waits for is given up after `patience`. Returns when nothing runs.
  void Drain(absl::Duration patience);
  // Every run, also a later one, is finished UNAVAILABLE.
  void Shutdown();

  // Runs that wait or are in execution.
  size_t active() const;

 private:
  struct Waiter {
    uint64_t below;
    uint64_t arrival;  // runs that arrived after the request do not matter
    std::function<void()> done;
  };
  struct Entry {
    uint64_t arrival;
    std::shared_ptr<FunctionRun> run;
    int64_t patient_until_ns = 0;
  };

  void Loop();
  void NoteArrival(uint64_t run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the first run of the queue may be executed; if not, for how long it will wait at most.
  bool FirstIsDue(absl::Duration* wait) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the queued runs that `stop` is true of, finishes them with `why`, stops the running one
  // likewise.
  void StopIf(const std::function<bool(const FunctionRun&)>& stop, const absl::Status& why);
  std::vector<std::function<void()>> TakeDone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void(FunctionRun&)> execute_;
  const int64_t patience_ns_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Entry> queue_ ABSL_GUARDED_BY(mutex_);
  Entry running_ ABSL_GUARDED_BY(mutex_);  // run null: none
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_arrival_ ABSL_GUARDED_BY(mutex_) = 1;
  std::set<uint64_t> arrived_ ABSL_GUARDED_BY(mutex_);  // the newest runs
  uint64_t cancelled_below_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);  // not OK: shutting down
  bool shutdown_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mu
