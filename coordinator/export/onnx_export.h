// From a traced function and a checkpoint to an ONNX graph, op by op.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/export/checkpoint_values.h"
#include "coordinator/export/onnx_graph.h"
#include "proto/graph.pb.h"

namespace mu {

// Inputs are the columns that the function reads, outputs what it returns. The sizes that are not
// known before a batch comes are named "batch" or, of a list column's values and splits, as the
// input.
//
// INVALID_ARGUMENT naming the op and the line of the model for an op without an ONNX form, and for
// a variable or table that the checkpoint lacks or has with another shape.
absl::StatusOr<OnnxGraph> OnnxOf(const muster::FunctionProto& function,
                                 const CheckpointValues& checkpoint);

}  // namespace mu
