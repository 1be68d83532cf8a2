// Values of scheduled functions: futures that outlive the worker that computed them. Thread safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include "coordinator/core/batch_range.h"
#include "proto/worker.pb.h"

namespace mu {

// A record that on_bad_record: skip left out.
struct MarkedRecord {
  uint32_t before = 0;  // the good record that it stands before, from 0 within the lease or batch
  std::string reason;   // "file:line: what is wrong"
};

// What the steps of a function returned. Copies share the tensors. Of a call that an earlier
// coordinator had begun (RestoredJob::unfinished): the steps whose results that one did not have.
// Steps are counted from the first of these.
class FunctionResult {
 public:
  struct Step {
    uint32_t samples = 0;
    std::vector<Tensor> returns;       // empty if the step had no records
    std::vector<MarkedRecord> marked;  // of the lease whose first batch it read, in file order
    // Of a run's first step: since the end of the last step that its worker ran before. Else 0.
    absl::Duration gap;
  };
  FunctionResult(std::vector<std::string> names, uint32_t requested_steps)
      : names_(std::move(names)), requested_steps_(requested_steps) {}

  size_t steps() const { return steps_.size(); }
  uint32_t samples(size_t step) const { return steps_[step].samples; }
  uint64_t samples() const;
  const std::vector<MarkedRecord>& marked(size_t step) const { return steps_[step].marked; }
  absl::Duration gap(size_t step) const { return steps_[step].gap; }
  uint64_t bad_records() const { return bad_records_; }
  const std::string& first_bad_record() const { return first_bad_record_; }
  // The records that the steps used, in order; empty if the function reads no data.
  const std::vector<BatchRange>& batches() const { return batches_; }
  // The data ended before all steps could run. Also false of a call that had its batches in a
  // checkpoint of an earlier program, which does not say how many steps were asked for.
  bool end_of_data() const { return steps_.size() < requested_steps_; }

  // What step `step` returned as `name`. NOT_FOUND for another name (the message lists them),
  // OUT_OF_RANGE for a step that did not run or had no records.
  absl::StatusOr<Tensor> Get(size_t step, const std::string& name) const;
  // Mean of a float scalar over the steps, weighted by samples (by steps if the function reads no
  // data).
  absl::StatusOr<double> Mean(const std::string& name) const;

 private:
  friend class FunctionState;
  std::vector<std::string> names_;
  uint32_t requested_steps_;  // of those whose results belong here
  std::vector<Step> steps_;
  std::vector<BatchRange> batches_;
  uint64_t bad_records_ = 0;
  std::string first_bad_record_;
};

// An error that one of Schedule, Join, Done or a Fetch of a refused call tells the user, once.
struct PendingError {
  explicit PendingError(absl::Status error) : status(std::move(error)) {}
  absl::Status Report() {
    reported = true;
    return status;
  }
  const absl::Status status;
  std::atomic<bool> reported = false;
};

// The shared state of a call. The runtime writes, RemoteValues read.
class FunctionState {
 public:
  // `requested_steps`: of the whole call. `first_step`, at most as many: the first whose result is
  // added here; an earlier coordinator had those before.
  FunctionState(std::vector<std::string> names, uint32_t requested_steps, uint32_t first_step = 0)
      : first_step_(first_step), result_(std::move(names), requested_steps - first_step) {}
  // A step's result as a worker sends it; INTERNAL if its tensors do not parse.
  static absl::StatusOr<FunctionResult::Step> Parse(const pb::StepResult& step);
  void AddStep(const pb::StepResult& step, FunctionResult::Step parsed);
  void SetBatches(std::vector<BatchRange> batches);  // of all steps of the call
  void Finish(absl::Status status);
  bool Done() const;
  // Called when somebody begins to wait for a call that is not done; it must not wait itself. To be
  // set before anybody can.
  void OnWait(std::function<void()> on_wait) { on_wait_ = std::move(on_wait); }
  void NoteWait() const;  // somebody waits elsewhere
  absl::StatusOr<FunctionResult> Wait() const;
  bool WaitFor(absl::Duration timeout) const;  // whether it is done
  // Calls `done` once the call is done: at once if it is, else on the runtime's loop, which
  // finishes it.
  void WhenDone(std::function<void()> done);

 private:
  const uint32_t first_step_;
  std::function<void()> on_wait_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> when_done_ ABSL_GUARDED_BY(mutex_);
  FunctionResult result_ ABSL_GUARDED_BY(mutex_);
};

class RemoteValue {
 public:
  RemoteValue() = default;
  explicit RemoteValue(FunctionId id, std::shared_ptr<FunctionState> state)
      : id_(id), state_(std::move(state)) {}
  // A call that was refused because of an earlier error, which the first look at this value
  // reports.
  explicit RemoteValue(std::shared_ptr<PendingError> error) : error_(std::move(error)) {}

  FunctionId id() const { return id_; }
  bool Done() const { return state_ == nullptr || state_->Done(); }
  // Waits at most so long, for somebody who wants to look at something else meanwhile. Whether it
  // is done: Fetch would not wait.
  bool WaitFor(absl::Duration timeout) const {
    return state_ == nullptr || state_->WaitFor(timeout);
  }
  // Somebody waits for it elsewhere.
  void NoteWait() const {
    if (state_ != nullptr) state_->NoteWait();
  }
  // See FunctionState. `done` must not call the runtime.
  void WhenDone(std::function<void()> done) const {
    if (state_ == nullptr) return done();
    state_->WhenDone(std::move(done));
  }
  // Waits. The function's error, or CANCELLED if another one's error ended it.
  absl::StatusOr<FunctionResult> Fetch() const;

 private:
  FunctionId id_;
  std::shared_ptr<FunctionState> state_;
  std::shared_ptr<PendingError> error_;
};

}  // namespace mu
