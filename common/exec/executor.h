// Runs the steps of a compiled function.
//
//   auto compiled = Compile(function, routing);  // once per install; immutable, shared
//   Executor executor(*compiled);                // buffers; one thread at a time
//   executor.RunStep(inputs, access, &returns);
//
// A step: compute the ids it needs; one Pull; the rest of the graph; one Push. Where the graph
// needs products that servers compute, a call for them comes in between. Of a function with
// micro_batches, ids, Pull and what is accumulated are computed for each slice of the batch, with
// the buffers of one slice, and the rest once. Denormal floats are taken for 0
// (common/base/flush_denormals.h).
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/sharding/parameter_access.h"
#include "common/tensor/tensor.h"
#include "proto/graph.pb.h"
#include "proto/table.pb.h"

namespace mu {

class CompiledFunction;  // common/exec/compiled_function.h
class Telemetry;         // common/obs/telemetry.h

// Verifies the graph against the op table and the routing (names, shapes, dims), plans it, fuses
// what can be fused. INVALID_ARGUMENT with op and file:line for a graph that does not verify.
absl::StatusOr<std::shared_ptr<const CompiledFunction>> Compile(
    const muster::FunctionProto& function, const muster::RoutingProto& routing);

struct StepInputs {
  const Batch* batch = nullptr;   // null if the function reads no dataset
  absl::Span<const Tensor> args;  // scalars, in the order of FunctionProto.args
  int64_t worker_index = 0;
  // The step's number in the job, the same each time it is run; random numbers are a function of
  // it and of the slice.
  uint64_t step = 0;
  // Which slice of the step's batch `batch` is (FunctionProto.micro_batches). The executor cuts the
  // batch itself.
  uint32_t slice = 0;
};

class Executor {
 public:
  // `telemetry`, which may be null, gets the timers "step.ids", "step.pull", "step.compute",
  // "step.multiply" (within compute) and "step.push".
  explicit Executor(std::shared_ptr<const CompiledFunction> function,
                    Telemetry* telemetry = nullptr);
  ~Executor();

  // `returns` get the values of FunctionProto.returns; they own their memory. Errors carry an
  // ErrorDetail with op and file:line where an op is at fault (kind ERROR_USER); errors of `access`
  // pass through as they are. Nothing is pushed unless everything was computed, nor if a gradient
  // or a returned float is NaN or infinite ("NaN in ...": op named).
  absl::Status RunStep(const StepInputs& inputs, ParameterAccess& access,
                       std::vector<Tensor>* returns);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mu
