#include "common/exec/sliced_batch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/flush_denormals.h"
#include "common/base/status.h"
#include "common/exec/bad_id_report.h"
#include "common/exec/nonfinite_report.h"
#include "common/obs/telemetry.h"
#include "common/tensor/batch_slice.h"

namespace mu {

SlicedBatch::SlicedBatch(const CompiledFunction& function)
    : plan_(*function.slice_plan()), run_(plan_), totals_(plan_, function.plan()) {}

absl::Status SlicedBatch::Run(const StepInputs& inputs, const StepTimers& timers,
                              ParameterAccess& access, mu::Run* finish) {
  if (inputs.batch == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("function \"", plan_.function.name(),
                                                   "\": the step has no batch to cut into slices"));
  }
  const Batch& batch = *inputs.batch;
  const uint32_t count = std::max(1u, std::min(plan_.function.micro_batches(), batch.records));
  totals_.Begin();
  uint32_t begin = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t records = batch.records / count + (i < batch.records % count ? 1 : 0);
    MU_RETURN_IF_ERROR(SliceBatch(batch, begin, records, &slice_));
    begin += records;
    StepInputs slice = inputs;
    slice.batch = &slice_;
    slice.slice = i;
    const float part = count == 1 ? 1.0f : static_cast<float>(records) / batch.records;
    MU_RETURN_IF_ERROR(RunSlice(slice, part, timers, access, finish));
  }
  totals_.BindTo(finish);
  return absl::OkStatus();
}

absl::Status SlicedBatch::RunSlice(const StepInputs& inputs, float part, const StepTimers& timers,
                                   ParameterAccess& access, mu::Run* finish) {
  {
    const ScopedTimer timing(timers.ids);
    MU_RETURN_IF_ERROR(run_.Begin(inputs));
  }
  {
    const ScopedTimer timing(timers.pull);
    MU_RETURN_IF_ERROR(Pull(inputs.slice == 0, access, finish));
  }
  const ScopedTimer timing(timers.compute);
  const ScopedFlushDenormals flush;
  MU_RETURN_IF_ERROR(run_.Compute(
      [&](absl::Span<const ProductRead> products) { return access.Multiply(products); }));
  MU_RETURN_IF_ERROR(CheckStepIsFinite(plan_, run_, inputs));
  return totals_.Add(run_, part);
}

absl::Status SlicedBatch::Pull(bool first, ParameterAccess& access, mu::Run* finish) {
  MU_RETURN_IF_ERROR(run_.PreparePull());
  std::vector<VariableRead> variables;
  if (first) {
    MU_RETURN_IF_ERROR(finish->PreparePull(&run_));
    variables = run_.variables;
    variables.insert(variables.end(), finish->variables.begin(), finish->variables.end());
  }
  if (variables.empty() && run_.rows.empty()) return absl::OkStatus();
  return WithPlaceOfBadId(plan_, run_, access.Pull(variables, run_.rows));
}

}  // namespace mu
