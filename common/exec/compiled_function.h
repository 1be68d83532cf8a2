// What Compile makes: a plan that any number of executors run. Immutable; safe from all threads.
#pragma once

#include <memory>
#include <utility>

#include "common/exec/executor.h"
#include "common/exec/plan.h"

namespace mu {

class CompiledFunction {
 public:
  explicit CompiledFunction(Plan plan) : plan_(std::move(plan)) {}
  const Plan& plan() const { return plan_; }

 private:
  const Plan plan_;
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
