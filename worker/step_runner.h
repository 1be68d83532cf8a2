// Executes the steps of a run: batch, pull, compute, push, result. Which steps, the core decides.
//
// For the thread that executes runs; the index may be set from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/obs/telemetry.h"
#include "proto/worker.pb.h"
#include "worker/core_shell.h"
#include "worker/data/lease_cache.h"
#include "worker/function_run.h"
#include "worker/step_access.h"
#include "worker/step_plan.h"

namespace mu {

class StepRunner {
 public:
  StepRunner(CoreShell* shell, LeaseCache* leases, Telemetry* telemetry);

  void SetIndex(uint32_t index) { index_.store(index, std::memory_order_relaxed); }

  // For tests: every step takes `factor` times as long. Before the first run.
  void SlowDown(double factor) { slow_down_ = factor; }
  // For benchmarks: every step waits so long; `on_idle` is told of each time without a run. Before
  // the first run.
  void WaitInSteps(absl::Duration wait) { step_wait_ = wait; }
  void OnIdle(std::function<void(uint64_t from_ns, uint64_t until_ns)> on_idle) {
    on_idle_ = std::move(on_idle);
  }
  // Of what a step says; steps that say more fail. Before the first run.
  void BoundResults(uint64_t most_bytes) { most_result_bytes_ = most_bytes; }
  // No step is slowed down any more: one that waited for servers would wait for a multiple of that.
  void Hurry() { hurry_.Notify(); }

  // Where the running step is.
  const StepWatch& watch() const { return watch_; }

  // Executes runs until the shell has none any more.
  void Loop();

 private:
  // What is kept from step to step of a run.
  struct Reading {
    const StepPlan plan;
    const pb::LeaseProto* lease = nullptr;  // whose batches are being used
    std::shared_ptr<const LeaseData> data;
  };

  void Execute(FunctionRun& run, uint32_t first_step);
  // Errors name the function and the step, and carry an ErrorDetail.
  absl::Status Step(const FunctionRun& run, uint32_t step, Reading* reading,
                    pb::StepResult* result);
  // What multiplies the learning rates of a step.
  static absl::StatusOr<float> RateScaleOf(const FunctionRun& run, uint32_t step);
  absl::Status Compute(const FunctionRun& run, uint32_t step, const Batch* batch,
                       pb::StepResult* result);
  // The batch of a step and what is to be said of it. No records: there is nothing to do.
  absl::StatusOr<Batch> NextBatch(const FunctionRun& run, const StepPlan::Place& place,
                                  Reading* reading, pb::StepResult* result);
  // INVALID_ARGUMENT: the result would be larger with these values than one message may be.
  absl::Status CheckSize(const pb::StepResult& result, const std::vector<Tensor>& returns) const;
  absl::Status Explain(const absl::Status& status, const FunctionRun& run, uint32_t step) const;

  CoreShell* const shell_;
  LeaseCache* const leases_;
  StepWatch watch_;
  StepAccess access_;
  std::atomic<uint32_t> index_{0};
  uint64_t most_result_bytes_ = std::numeric_limits<uint64_t>::max();
  double slow_down_ = 1;
  absl::Duration step_wait_;
  std::function<void(uint64_t from_ns, uint64_t until_ns)> on_idle_;
  Notification hurry_;
  uint64_t last_end_ns_ = 0;       // of the run before; 0: none
  uint64_t last_step_end_ns_ = 0;  // of its last step, whose result is told until last_end_ns_

  Timer* const idle_timer_;
  Timer* const data_timer_;
  Timer* const step_timer_;
  Counter* const functions_;
  Counter* const steps_;
  Counter* const samples_;
  Counter* const bad_records_;
  Counter* const refused_;
};

}  // namespace mu
