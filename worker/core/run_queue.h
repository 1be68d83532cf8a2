// The runs of a worker: executed one after the other, in the order in which they were dispatched,
// although the transport may hand them over in another one. Runs that name no order are executed as
// they arrive. Who waits for a cancellation, and what is handed back when the worker drains. A pure
// state machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "worker/core/action.h"
#include "worker/core/run.h"

namespace mu {

class RunQueue {
 public:
  // A run whose predecessor has not arrived waits for it, but no longer than `patience`: it may
  // have been lost on its way.
  explicit RunQueue(absl::Duration patience) : patience_(patience) {}

  // A run that comes after Drain is handed back at once. CANCELLED: its function was cancelled
  // before it arrived. UNAVAILABLE: after Shutdown.
  absl::Status Add(absl::Time now, WorkerRun run, WorkerActions* actions);
  // A run that is not added, since it was refused: nothing has to wait for it.
  void Refused(uint64_t order) { NoteArrival(order); }

  // Takes the first run that is due for execution, while none is executed. Null: none is.
  WorkerRun* Start(absl::Time now);
  WorkerRun* running() { return running_.has_value() ? &*running_ : nullptr; }
  const WorkerRun* running() const { return running_.has_value() ? &*running_ : nullptr; }
  // The running one is over.
  void Ended(WorkerActions* actions);

  // The caller of this run is gone.
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

  // From when on Start finds a run.
  absl::Time due() const;
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

  void NoteArrival(uint64_t order);
  // Ends the waiting runs that `stop` is true of, and stops the running one likewise.
  template <typename Stop>
  void StopIf(const Stop& stop, const absl::Status& why, WorkerActions* actions);
  void AnswerWaiters(WorkerActions* actions);

  const absl::Duration patience_;
  std::deque<WorkerRun> waiting_;
  std::optional<WorkerRun> running_;
  std::vector<Waiter> waiters_;
  uint64_t next_arrival_ = 1;
  std::set<uint64_t> arrived_;  // orders of the newest runs
  FunctionId cancelled_below_;
  bool draining_ = false;
  absl::Status refusal_;  // not OK: shut down
};

}  // namespace mu
