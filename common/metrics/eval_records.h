// Records of which metrics are measured: what a model predicted for them, and what was true.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mu {

struct EvalRecords {
  absl::Span<const float> predictions;  // [records], multi-class: [records, classes]
  absl::Span<const float> labels;       // [records]; empty: multi-class
  absl::Span<const int64_t> classes;    // [records], the true class; empty: another task
  absl::Span<const int64_t> groups;     // [records], such as the user; empty: there are none
  absl::Span<const float> weights;      // [records], at least 0; empty: each counts once

  size_t size() const { return classes.empty() ? labels.size() : classes.size(); }
  double weight(size_t record) const {
    return weights.empty() ? 1.0 : static_cast<double>(weights[record]);
  }
};

// INVALID_ARGUMENT unless there are `predictions` and `labels` for the same number of records, and
// groups and weights are empty or as many.
absl::Status CheckSizes(const EvalRecords& records);
// INVALID_ARGUMENT for a weight that is negative or not finite.
absl::Status CheckWeights(const EvalRecords& records);

}  // namespace mu
