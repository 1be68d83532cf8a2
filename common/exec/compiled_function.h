// What Compile makes: a plan, or one for each part of a step in slices, that any number of
// executors run. Immutable; safe from all threads.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "common/exec/executor.h"
#include "common/exec/plan.h"

namespace mu {

class CompiledFunction {
 public:
  explicit CompiledFunction(Plan plan, std::optional<Plan> slice_plan = std::nullopt)
      : plan_(std::move(plan)), slice_plan_(std::move(slice_plan)) {}
  // Of the whole step, or of what is left of it after the last slice.
  const Plan& plan() const { return plan_; }
  // Of one slice of the batch; null if it is not cut.
  const Plan* slice_plan() const { return slice_plan_.has_value() ? &*slice_plan_ : nullptr; }

 private:
  const Plan plan_;
  const std::optional<Plan> slice_plan_;
};

// Compile with other options than the usual ones, for tests that compare them. Results are the same
// bits.
absl::StatusOr<std::shared_ptr<const CompiledFunction>> CompileWithOptions(
    const muster::FunctionProto& function, const muster::RoutingProto& routing,
    const PlanOptions& options);

// Whether every variable and table that the function names exists as it says. INVALID_ARGUMENT with
// op and file:line.
absl::Status CheckAgainstRouting(const muster::FunctionProto& function,
                                 const muster::RoutingProto& routing);

}  // namespace mu
