// Which op a NaN comes from. Private to common/exec.
#pragma once

#include "common/exec/plan.h"
#include "common/exec/run.h"

namespace mu {

// OK if all gradients, additions and returned floats of a computed step are finite. Otherwise
// INVALID_ARGUMENT that names the op whose result was the first to be NaN or infinite, found by
// computing the step once more with every result kept (which is slow and happens once, at the end
// of a job that went wrong). `run` holds what was pulled.
absl::Status CheckStepIsFinite(const Plan& plan, const Run& run, const StepInputs& inputs);

}  // namespace mu
