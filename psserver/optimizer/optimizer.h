// Optimizers as they run on a server: over whole rows stored as [value | slots], or over spans of
// values with each slot in a span of its own. Element by element with single IEEE operations, so
// the bits do not depend on how rows are cut, grouped or vectorised.
//
// Immutable, hence thread safe; the rows are the caller's to guard.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/optimizer.pb.h"

namespace mu {

class RowOptimizer {
 public:
  RowOptimizer() = default;  // takes no gradients
  explicit RowOptimizer(const muster::OptimizerProto& proto);

  bool takes_gradients() const { return kind_ != Kind::kNone; }
  uint32_t slots() const { return kind_ == Kind::kAdagrad ? 1 : 0; }
  // What the elements of a slot begin with.
  float slot_initial(uint32_t) const { return initial_accumulator_; }

  // Applies `gradient` [n] to `value` [n]; `slots` [slots(), n] follow one another. No overlaps.
  // The learning rate is multiplied by `rate_scale` (a schedule's).
  void Apply(float* value, float* slots, const float* gradient, size_t n,
             float rate_scale = 1) const;
  // A row [value | slots] of `dim` columns each.
  void ApplyRow(float* row, const float* gradient, size_t dim, float rate_scale = 1) const {
    Apply(row, row + dim, gradient, dim, rate_scale);
  }

 private:
  enum class Kind { kNone, kSgd, kAdagrad };
  Kind kind_ = Kind::kNone;
  float learning_rate_ = 0;
  float epsilon_ = 0;
  float initial_accumulator_ = 0;
};

// True if none of the values is NaN or infinite.
bool AllFinite(const float* values, size_t n);

}  // namespace mu
