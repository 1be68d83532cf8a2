// What the slices of a step's batch give, accumulated: the values of the ops accumulate and
// accumulate_rows. Private to common/exec.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/exec/plan.h"
#include "common/exec/row_totals.h"
#include "common/exec/run.h"

namespace mu {

class SliceTotals {
 public:
  // The plans of one function's parts, which outlive this.
  SliceTotals(const Plan& slice, const Plan& finish);

  void Begin();
  // Adds what a slice computed, which is `part` of the records of the batch. Errors name the op:
  // INVALID_ARGUMENT for a value that has another shape than in the slices before,
  // RESOURCE_EXHAUSTED.
  absl::Status Add(const Run& slice, float part);
  // They are the values of the accumulations from then on, until Begin.
  void BindTo(Run* finish) const;

 private:
  struct Total {
    const PlannedAccumulation* planned;
    View value;  // without data before the first slice
    AlignedBuffer memory;
    std::unique_ptr<RowTotals> rows;  // of accumulate_rows, instead
  };

  absl::Status AddTo(Total* total, const Run& slice, float part);

  const Plan& plan_;  // of a slice
  std::deque<Total> totals_;
};

}  // namespace mu
