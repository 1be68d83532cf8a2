// The same workers fed by a real coordinator in this process.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench/scale/measured.h"
#include "bench/scale/options.h"
#include "common/base/status.h"
#include "proto/graph.pb.h"

namespace mu::scale {

struct Coordinated : Measured {
  double registered_seconds = 0, first_seconds = 0;  // after the start, see Print
  uint64_t functions = 0;                            // from the start to the end
  // At the beginning of the window, at its end, and at most.
  double begin_mb = 0, end_mb = 0, most_mb = 0;
  pb::FunctionProto function;  // that was run
  // From the start to the end, with churn. All functions have ended then.
  uint64_t lost_workers = 0;
  uint64_t runs_again = 0;      // of functions whose worker was lost
  uint64_t steps_repeated = 0;  // that workers ran although another one had begun with them
  uint64_t results_again = 0;   // of these, those whose results the coordinator had
};

// `directory`: for logs.
absl::StatusOr<Coordinated> MeasureCoordinator(const Options& options,
                                               const std::string& directory);

// INTERNAL if a loss cost more than the step that each function in flight on the worker was at.
absl::Status CheckRepeated(const Coordinated& measured, const Options& options);

void Print(const Coordinated& measured, const Options& options);

}  // namespace mu::scale
