// A plan in the making: the nodes that run kernels, as the passes over it (folding, fusion) change
// them. Private to the planner.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "common/exec/kernel.h"
#include "common/graph/op_def.h"
#include "common/tensor/tensor.h"
#include "proto/graph.pb.h"

namespace mu {

struct DraftNode {
  std::string op;    // as the table of kernels knows it
  int node = 0;      // of the graph; the last of those fused
  int attrs_of = 0;  // of the graph: whose attributes the kernel was made with
  std::vector<int> inputs;
  int first_output = 0;
  int outputs = 0;
  KernelPtr kernel;
  bool removed = false;
};

struct Draft {
  const pb::FunctionProto* function = nullptr;
  std::vector<TensorSpec> specs;  // by value
  std::vector<DraftNode> nodes;   // in the order of the graph
  std::vector<Tensor> constants;  // by value; without type where the value is none
  std::vector<bool> wanted;       // by value: returned, pulled by, or pushed
  bool IsConstant(int value) const { return constants[value].dtype() != pb::DTYPE_INVALID; }
};

// Makes the kernel that `node.op` names, for the types and shapes of its inputs.
absl::Status MakeKernel(const Draft& draft, DraftNode* node);

// Runs what depends on constants only (fold.cc).
absl::Status FoldConstants(Draft* draft);

// Fuses matmul with the bias, relu or relu_grad that follows it (fusion.cc).
absl::Status FuseMatmuls(Draft* draft);

}  // namespace mu
