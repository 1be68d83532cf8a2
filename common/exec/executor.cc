#include "common/exec/executor.h"

#include <cstring>

#include "common/base/flush_denormals.h"
#include "common/base/status.h"
#include "common/exec/bad_id_report.h"
#include "common/exec/compiled_function.h"
#include "common/exec/nonfinite_report.h"
#include "common/exec/run.h"
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
        ids_timer(FindTimer(telemetry, "step.ids")),
        pull_timer(FindTimer(telemetry, "step.pull")),
        compute_timer(FindTimer(telemetry, "step.compute")),
        push_timer(FindTimer(telemetry, "step.push")) {}

  absl::Status Pull(ParameterAccess& access) {
    const ScopedTimer timing(pull_timer);
    MU_RETURN_IF_ERROR(run.PreparePull());
    if (run.variables.empty() && run.rows.empty()) return absl::OkStatus();
    return WithPlaceOfBadId(function->plan(), run, access.Pull(run.variables, run.rows));
  }

  absl::Status Compute(const StepInputs& inputs) {
    const ScopedTimer timing(compute_timer);
    const ScopedFlushDenormals flush;
    MU_RETURN_IF_ERROR(run.Compute());
    MU_RETURN_IF_ERROR(run.PreparePush());
    return CheckStepIsFinite(function->plan(), run, inputs);
  }

  absl::Status Push(ParameterAccess& access) {
    const ScopedTimer timing(push_timer);
    if (run.variable_writes.empty() && run.row_writes.empty()) return absl::OkStatus();
    return access.Push(run.variable_writes, run.row_writes);
  }

  const std::shared_ptr<const CompiledFunction> function;
  Run run;
  Timer* const ids_timer;
  Timer* const pull_timer;
  Timer* const compute_timer;
  Timer* const push_timer;
};

Executor::Executor(std::shared_ptr<const CompiledFunction> function, Telemetry* telemetry)
    : state_(std::make_unique<State>(std::move(function), telemetry)) {}

Executor::~Executor() = default;

absl::Status Executor::RunStep(const StepInputs& inputs, ParameterAccess& access,
                               std::vector<Tensor>* returns) {
  State& state = *state_;
  {
    const ScopedTimer timing(state.ids_timer);
    MU_RETURN_IF_ERROR(state.run.Begin(inputs));
  }
  MU_RETURN_IF_ERROR(state.Pull(access));
  MU_RETURN_IF_ERROR(state.Compute(inputs));
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
