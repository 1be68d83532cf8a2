// Checks what a run's request brings for its function. Pure.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "common/tensor/tensor.h"
#include "proto/graph.pb.h"
#include "proto/worker.pb.h"

namespace mu {

// INVALID_ARGUMENT (ERROR_USER): the arguments or the dataset are not those of the function.
absl::Status ParseInputs(const muster::FunctionProto& graph, const muster::RunRequest& request,
                         std::vector<Tensor>* args);

}  // namespace mu
