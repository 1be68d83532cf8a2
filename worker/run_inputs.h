// Checks what a run's request brings for its function. Pure.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "common/tensor/tensor.h"
#include "proto/graph.pb.h"
#include "proto/worker.pb.h"
#include "worker/step_plan.h"

namespace mu {

// INVALID_ARGUMENT (ERROR_USER): the arguments or the dataset are not those of the function.
absl::Status ParseInputs(const muster::FunctionProto& graph, const muster::RunRequest& request,
                         const std::vector<LeasedBatches>& batches, std::vector<Tensor>* args);

}  // namespace mu
