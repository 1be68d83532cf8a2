// The runs of a worker: executed one after the other, in the order in which they arrive. Who waits
// for a cancellation, and what is handed back when the worker drains. A pure state machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "worker/core/action.h"
#include "worker/core/run.h"

namespace mu {

class RunQueue {
 public:
  // A run that comes after Drain is handed back at once. CANCELLED: its function was cancelled
  // before it arrived. UNAVAILABLE: after Shutdown.
  absl::Status Add(WorkerRun run, WorkerActions* actions);

  // Takes the first run for execution. Null: one is executed, or there is none.
  WorkerRun* Start();
  WorkerRun* running() { return running_.has_value() ? &*running_ : nullptr; }
  const WorkerRun* running() const { return running_.has_value() ? &*running_ : nullptr; }
  // The running one is over.
  void Ended(WorkerActions* actions);

  // The caller of this run is gone: it ends with CallerGoneError.
  void CallerGone(CallId run);
  // Ends every run of a function below `below`, also those that arrive later; `call` is answered
  // when none of them is in execution any more.
  void CancelBelow(FunctionId below, CallId call, WorkerActions* actions);
  // The servers went back to an older state: functions that were cancelled before may be repeated
  // now. (What still comes of the cancelled runs, the servers refuse.)
  void ForgetCancelled() { cancelled_below_ = FunctionId(); }

  // A new epoch: every run so far ends with `why`, and ids start afresh.
  void Reset(const absl::Status& why, WorkerActions* actions);
  // The running step is the last; every run, also a later one, is handed back with what it lacks.
  void Drain(WorkerActions* actions);
  // Every run, also a later one, ends UNAVAILABLE.
  void Shutdown(WorkerActions* actions);

  bool draining() const { return draining_; }
  bool shut_down() const { return !refusal_.ok(); }
  // Runs that wait or are in execution.
  size_t active() const { return waiting_.size() + (running_.has_value() ? 1 : 0); }

 private:
  struct Waiter {
    FunctionId below;
    uint64_t arrival;  // runs that arrived after the request do not matter
    CallId call;
  };

  // Ends the waiting runs that `stop` is true of, and stops the running one likewise.
  template <typename Stop>
  void StopIf(const Stop& stop, const absl::Status& why, WorkerActions* actions);
  void AnswerWaiters(WorkerActions* actions);

  std::deque<WorkerRun> waiting_;
  std::optional<WorkerRun> running_;
  std::vector<Waiter> waiters_;
  uint64_t next_arrival_ = 1;
  FunctionId cancelled_below_;
  bool draining_ = false;
  absl::Status refusal_;  // not OK: shut down
};

}  // namespace mu
