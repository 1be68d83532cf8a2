// What evaluates checkpoints elsewhere than on the job's workers.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/training/training_history.h"

namespace mu {

// Evaluates the checkpoint in this directory, on any thread; CANCELLED once `*stop` is above 0.
// Adds what deserves a look to `*warnings`.
using CheckpointEvaluator = std::function<absl::StatusOr<Evaluation>(
    const std::string& directory, const std::atomic<int>* stop,
    std::vector<std::string>* warnings)>;

}  // namespace mu
