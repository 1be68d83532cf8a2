// Executes the steps of a run: batch, pull, compute, push, result.
//
// For the queue's thread; the index may be set from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/obs/telemetry.h"
#include "proto/worker.pb.h"
#include "worker/data/lease_cache.h"
#include "worker/function_run.h"
#include "worker/parameter_route.h"
#include "worker/result_stream.h"
#include "worker/step_access.h"

namespace mu {

class StepRunner {
 public:
  StepRunner(LeaseCache* leases, ParameterRoute* route, Telemetry* telemetry);

  void SetIndex(uint32_t index) { index_.store(index, std::memory_order_relaxed); }

  // For tests: every step takes `factor` times as long. Before the first run.
  void SlowDown(double factor) { slow_down_ = factor; }

  // Where the running step is.
  const StepWatch& watch() const { return watch_; }

  // Runs the steps from the request's first to its last, unless the run is stopped, and finishes
  // its call. Errors name the function and the step, and carry an ErrorDetail.
  void Execute(FunctionRun& run);

 private:
  // The lease whose batches are being used.
  struct CurrentLease {
    const pb::LeaseProto* lease = nullptr;
    std::shared_ptr<const LeaseData> data;
  };

  absl::Status ExecuteSteps(FunctionRun& run, ResultStream* results);
  absl::Status Step(FunctionRun& run, uint32_t step, const Batch* batch, pb::StepResult* result);
  // The batch of a step and what is to be said of it. No records: there is nothing to do.
  absl::StatusOr<Batch> NextBatch(const FunctionRun& run, const pb::LeaseProto* lease,
                                  uint32_t batch, CurrentLease* current, pb::StepResult* result);
  absl::Status Explain(const absl::Status& status, const FunctionRun& run, uint32_t step) const;

  LeaseCache* const leases_;
  StepWatch watch_;
  StepAccess access_;
  std::atomic<uint32_t> index_{0};
  double slow_down_ = 1;
  uint64_t last_end_ns_ = 0;  // of the run before; 0: none

  Timer* const idle_timer_;
  Timer* const data_timer_;
  Timer* const step_timer_;
  Counter* const functions_;
  Counter* const steps_;
  Counter* const samples_;
  Counter* const bad_records_;
};

}  // namespace mu
