// Optimizers as they run on a server: over whole rows stored as [value | slots], or over spans of
// rows with each slot in a span of its own. Element by element with single IEEE operations, so the
// bits do not depend on how rows are cut, grouped or vectorised.
//
// Immutable, hence thread safe; the rows are the caller's to guard. Cheap to copy.
#pragma once

#include <cstddef>
#include <memory>

#include "common/optimizer/slot_layout.h"
#include "proto/optimizer.pb.h"
#include "psserver/optimizer/update_rule.h"

namespace mu {

class RowOptimizer {
 public:
  RowOptimizer() = default;  // takes no gradients
  // Of rows of `width` values.
  RowOptimizer(const muster::OptimizerProto& proto, size_t width);

  bool takes_gradients() const { return rule_ != nullptr; }
  bool needs_job_step() const { return rule_ != nullptr && rule_->needs_job_step(); }
  const SlotLayouts& slots() const { return slots_; }
  size_t slot_floats() const { return slot_floats_; }  // of a row, of all slots

  // The rest needs takes_gradients.

  // Once for all that a push updates with this optimizer.
  StepRates RatesOf(const PushStep& step) const { return rule_->RatesOf(step); }
  // A row [value | slots].
  void ApplyRow(const StepRates& rates, float* row, const float* gradient) const {
    rule_->Apply(rates, row, {row, offsets_}, gradient, width_);
  }
  // Values [rows, width] with gradients of that shape; `slots` holds slot after slot, each [rows,
  // its width].
  void ApplyRows(const StepRates& rates, float* value, float* slots, const float* gradient,
                 size_t rows) const;

  // Rows that were given their values otherwise (UpdateRule::Adopt). Without gradients nothing
  // happens.
  void AdoptRow(float* row) const {
    if (rule_ != nullptr) rule_->Adopt(row, {row, offsets_}, width_);
  }
  // Rows [first, first + count) of as many as `rows`, which are stored as ApplyRows has them.
  void AdoptRows(const float* value, float* slots, size_t rows, size_t first, size_t count) const;

 private:
  static constexpr size_t kMostSlots = 4;

  std::shared_ptr<const UpdateRule> rule_;
  SlotLayouts slots_;
  size_t width_ = 0;
  size_t slot_floats_ = 0;
  size_t offsets_[kMostSlots] = {};  // of each slot in a row
};

}  // namespace mu
