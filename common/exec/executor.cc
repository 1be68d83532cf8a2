#include "common/exec/executor.h"

#include <cstring>

#include "common/base/flush_denormals.h"
#include "common/base/status.h"
#include "common/exec/bad_id_report.h"
#include "common/exec/compiled_function.h"
#include "common/exec/nonfinite_report.h"
#include "common/exec/run.h"
#include "common/exec/sliced_batch.h"
#include "common/obs/telemetry.h"

namespace mu {
namespace {

Timer* FindTimer(Telemetry* telemetry, const char* name) {
  return telemetry == nullptr ? nullptr : telemetry->timer(name);
}

Tensor Copy(const View& view) {
  Tensor tensor(view.dtype, view.shape);
  if (view.bytes() > 0) std::memcpy(tensor.raw(), view.data, view.bytes());
  return tensor;
}

}  // namespace

struct Executor::State {
  State(std::shared_ptr<const CompiledFunction> compiled, Telemetry* telemetry)
      : function(std::move(compiled)),
        run(function->plan()),
        timers{FindTimer(telemetry, "step.ids"), FindTimer(telemetry, "step.pull"),
               FindTimer(telemetry, "step.compute"), FindTimer(telemetry, "step.push"),
               FindTimer(telemetry, "step.multiply")} {
    if (function->slice_plan() != nullptr) slices = std::make_unique<SlicedBatch>(*function);
  }

  // What is left to compute has its inputs afterwards.
  absl::Status Prepare(const StepInputs& inputs, ParameterAccess& access) {
    if (slices != nullptr) {
      MU_RETURN_IF_ERROR(slices->Run(inputs, timers, access, &run));
      return run.Begin(inputs);
    }
    {
      const ScopedTimer timing(timers.ids);
      MU_RETURN_IF_ERROR(run.Begin(inputs));
    }
    const ScopedTimer timing(timers.pull);
    MU_RETURN_IF_ERROR(run.PreparePull());
    if (run.variables.empty() && run.rows.empty()) return absl::OkStatus();
    return WithPlaceOfBadId(function->plan(), run, access.Pull(run.variables, run.rows));
  }

  absl::Status Compute(const StepInputs& inputs, ParameterAccess& access) {
    const ScopedTimer timing(timers.compute);
    const ScopedFlushDenormals flush;
    MU_RETURN_IF_ERROR(run.Compute([&](absl::Span<const ProductRead> products) {
      const ScopedTimer multiplying(timers.multiply);
      return access.Multiply(products);
    }));
    MU_RETURN_IF_ERROR(run.PreparePush());
    return CheckStepIsFinite(function->plan(), run, inputs);
  }

  absl::Status Push(ParameterAccess& access) {
    const ScopedTimer timing(timers.push);
    if (run.variable_writes.empty() && run.row_writes.empty()) return absl::OkStatus();
    return access.Push(run.variable_writes, run.row_writes);
  }

  const std::shared_ptr<const CompiledFunction> function;
  Run run;
  const StepTimers timers;
  std::unique_ptr<SlicedBatch> slices;  // null: the batch is not cut
};

Executor::Executor(std::shared_ptr<const CompiledFunction> function, Telemetry* telemetry)
    : state_(std::make_unique<State>(std::move(function), telemetry)) {}

Executor::~Executor() = default;

absl::Status Executor::RunStep(const StepInputs& inputs, ParameterAccess& access,
                               std::vector<Tensor>* returns) {
  State& state = *state_;
  MU_RETURN_IF_ERROR(state.Prepare(inputs, access));
  MU_RETURN_IF_ERROR(state.Compute(inputs, access));
  // Copied before the push, which may take long; the values stay valid, but errors of the push
  // return nothing.
  std::vector<Tensor> values;
  for (const int value : state.function->plan().returns)
    values.push_back(Copy(state.run.value(value)));
  MU_RETURN_IF_ERROR(state.Push(access));
  returns->swap(values);
  return absl::OkStatus();
}

}  // namespace mu
