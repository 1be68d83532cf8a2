// The part of a step that is computed for each slice of its batch, one after the other. Private to
// common/exec.
#pragma once

#include "absl/status/status.h"
#include "common/exec/compiled_function.h"
#include "common/exec/executor.h"
#include "common/exec/run.h"
#include "common/exec/slice_totals.h"
#include "common/sharding/parameter_access.h"

namespace mu {

class Timer;

// Where the parts of a step are timed; each may be null.
struct StepTimers {
  Timer* ids = nullptr;
  Timer* pull = nullptr;
  Timer* compute = nullptr;
  Timer* push = nullptr;
  Timer* multiply = nullptr;  // within compute: products of servers
};

class SlicedBatch {
 public:
  // `function` has a slice_plan and outlives this.
  explicit SlicedBatch(const CompiledFunction& function);

  // Cuts the batch into FunctionProto.micro_batches slices of consecutive records, whose sizes
  // differ by at most one, or into as many as it has records. Each slice pulls its rows; the first
  // one also the step's variables, those that only `finish` reads as well. Then `finish` has what
  // was accumulated. Buffers are as large as a slice needs them.
  absl::Status Run(const StepInputs& inputs, const StepTimers& timers, ParameterAccess& access,
                   mu::Run* finish);

 private:
  absl::Status RunSlice(const StepInputs& inputs, float part, const StepTimers& timers,
                        ParameterAccess& access, mu::Run* finish);
  absl::Status Pull(bool first, ParameterAccess& access, mu::Run* finish);

  const Plan& plan_;
  mu::Run run_;
  SliceTotals totals_;
  Batch slice_;
};

}  // namespace mu
