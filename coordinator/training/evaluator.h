// Evaluation and prediction: runs a function over a whole dataset on all workers, each record once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/cluster/coordinator.h"

namespace mu {

struct EvalOptions {
  std::string prediction = "prediction";  // returned by the function, float32 [batch]
  std::string label = "label";            // the same; empty: there is none
  uint32_t steps_per_function = 8;
  const std::atomic<int>* stop = nullptr;
  // Batches in the order of the dataset, whatever worker computed them.
  bool in_order = false;
};

// One batch's values; `labels` is empty if the function returns none.
using OnBatch = std::function<absl::Status(absl::Span<const float> predictions,
                                           absl::Span<const float> labels)>;

// Returns how many records there were, each of which was in one call of `on_batch`. CANCELLED if
// stopped; INTERNAL with the numbers if results are missing.
absl::StatusOr<uint64_t> ForEachPrediction(
    Coordinator& coordinator, const Function& function, const Dataset& dataset,
    const EvalOptions& options, const OnBatch& on_batch,
    const std::function<void(uint64_t steps, uint64_t total)>& progress = nullptr);

}  // namespace mu
