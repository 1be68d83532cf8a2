// Evaluation and prediction: runs a function over a whole dataset on all workers, each record once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/cluster/coordinator.h"

namespace mu {

struct ForEachBatchOptions {
  // What the function returns that is wanted. Each has the batch's records as its first size.
  std::vector<std::string> returns;
  // The same of lists (NAME.values, NAME.splits), which have other sizes; behind `returns` in
  // EvaluatedBatch::values.
  std::vector<std::string> returned_lists;
  uint32_t steps_per_function = 8;
  // Whose functions these are, alone: beside training, see Coordinator::CreateGroup.
  FunctionGroup group = {};
  const std::atomic<int>* stop = nullptr;
  // What runs when it is stopped is cancelled; false: it runs to its end, and Join waits for it.
  bool cancel = true;
  // Batches in the order of the dataset, whatever worker computed them.
  bool in_order = false;
  // Called several times a second while results are waited for; with a group not at its end.
  std::function<void()> on_look = nullptr;
};

struct EvaluatedBatch {
  uint32_t records = 0;
  // Parallel to ForEachBatchOptions::returns and returned_lists; empty: no records
  absl::Span<const Tensor> values;
  // With in_order: records that were left out, each before one of the batch's (or behind its last).
  absl::Span<const MarkedRecord> marked;
};
using OnEvaluatedBatch = std::function<absl::Status(const EvaluatedBatch& batch)>;
using OnEvalProgress = std::function<void(uint64_t steps, uint64_t total)>;

// Returns how many records there were, each of which was in one call of `on_batch`. CANCELLED if
// stopped; INVALID_ARGUMENT for a function that does not read this data set, and for a returned
// value that is not one for each record; INTERNAL with the numbers if results are missing. After
// the error of `on_batch` no function of it runs any more: those in flight are waited for, those of
// a group cancelled.
absl::StatusOr<uint64_t> ForEachBatch(Coordinator& coordinator, const Function& function,
                                      const Dataset& dataset, const ForEachBatchOptions& options,
                                      const OnEvaluatedBatch& on_batch,
                                      const OnEvalProgress& progress = nullptr);

struct EvalOptions {
  std::string prediction = "prediction";  // returned by the function, float32 [batch]
  std::string label = "label";            // the same; empty: there is none
  uint32_t steps_per_function = 8;
  const std::atomic<int>* stop = nullptr;
  bool in_order = false;  // as ForEachBatchOptions has it
};

// One batch's values; `labels` is empty if the function returns none.
using OnBatch = std::function<absl::Status(absl::Span<const float> predictions,
                                           absl::Span<const float> labels)>;

// ForEachBatch for predictions that are one float32 for each record.
absl::StatusOr<uint64_t> ForEachPrediction(Coordinator& coordinator, const Function& function,
                                           const Dataset& dataset, const EvalOptions& options,
                                           const OnBatch& on_batch,
                                           const OnEvalProgress& progress = nullptr);

}  // namespace mu
