// Checks what a run's request brings for its function. Pure.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "common/tensor/tensor.h"
#include "proto/graph.pb.h"
#include "proto/worker.pb.h"
#include "worker/step_plan.h"

namespace mu {

// `read_only`: the function changes no variable or table. INVALID_ARGUMENT (ERROR_USER): the
// arguments or the dataset are not those of the function, or it is to read a checkpoint's view and
// changes something.
absl::Status ParseInputs(const muster::FunctionProto& graph, bool read_only,
                         const muster::RunRequest& request,
                         const std::vector<LeasedBatches>& batches, std::vector<Tensor>* args);

}  // namespace mu
