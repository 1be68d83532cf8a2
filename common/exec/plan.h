// A plan: what a step does, decided once per compile. Immutable; safe from all threads.
//
// A value is one output of one node of the graph; values are numbered through, those of a node next
// to each other.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/exec/kernel.h"
#include "common/graph/verifier.h"
#include "common/sharding/parameter_access.h"
#include "common/tensor/tensor.h"
#include "proto/graph.pb.h"

namespace mu {

// Of a function with micro batches there are two plans: what is computed for each slice of the
// batch, up to the accumulations, and what is computed once, from what they gave.
enum class PlanPart { kWhole, kSlice, kFinish };

struct PlanOptions {
  bool fuse = true;  // matmul with bias, relu and relu_grad
  // Buffers shared by values that live at different times, results over dying inputs.
  bool reuse = true;
  bool fold = true;  // what depends on constants only is computed at compile time
  PlanPart part = PlanPart::kWhole;
};

// Where an output goes: indices of buffers, see OutputPlace.
struct PlannedPlace {
  int buffer = -1;
  int spare = -1;
  int in_place_input = -1;
};

struct PlannedNode {
  int node = 0;  // of the graph: the last of those fused
  KernelPtr kernel;
  std::vector<int> inputs;  // values
  int first_output = 0;     // value
  std::vector<PlannedPlace> places;
};

struct PlannedColumn {
  int node;
  int value;
  std::string name;
  TensorSpec spec;
};
struct PlannedArg {
  int node;
  int value;
  int index;
  DType dtype;
};
struct PlannedVariable {
  uint32_t id;
  int64_t first_row;  // of axis 0
  int64_t rows;       // -1: all
  int buffer;
  size_t bytes;
  Shape shape;              // of what is read
  std::vector<int> values;  // one per read of it
  int node;
};
struct PlannedRows {
  int node;
  uint32_t table;
  int64_t dim;
  int ids;    // value
  int value;  // the rows
  int buffer;
};
struct PlannedVariableUpdate {
  int node;
  uint32_t id;
  VariableWrite::Kind kind;
  int value;
  Shape shape;     // of the variable
  int other = -1;  // value: of kScatterAdd and kScatterUpdate the rows, of kProductGradient x
};
// A product that servers compute.
struct PlannedProduct {
  int node;
  uint32_t id;
  bool back;
  int64_t columns;  // of the result
  int x;            // value
  int value;        // the result
  int buffer;
  int stage;
};
struct PlannedRowsUpdate {
  int node;
  uint32_t table;
  int64_t dim;
  int ids;
  int gradients;
};

// The seam between the parts of a step in slices; both have the same ones, in the same order.
struct PlannedAccumulation {
  int node;
  bool sums;                // else it averages, by records
  std::vector<int> inputs;  // values of the slices' plan: x, or ids, gradients and rows
  int first_output;         // values of the finish's plan: the same of all slices
  bool of_rows() const { return inputs.size() > 1; }
};

struct Plan {
  pb::FunctionProto function;
  PlanPart part = PlanPart::kWhole;
  std::vector<TensorSpec> specs;  // by value
  std::vector<int> node_of;       // by value: node of the graph
  int buffers = 0;

  std::vector<std::pair<int, Tensor>> constants;  // value, including what was folded
  std::vector<PlannedColumn> columns;
  std::vector<PlannedArg> args;
  std::vector<int> worker_indices;  // values
  std::vector<PlannedNode> nodes;   // in the order they run
  int id_nodes = 0;                 // the first of them, which the ids to pull need
  // Nodes behind the last one of each stage but the last: its products are computed before more
  // nodes are.
  std::vector<int> stage_ends;
  std::vector<PlannedProduct> products;
  std::vector<PlannedVariable> variables;
  std::vector<PlannedRows> rows;
  std::vector<PlannedVariableUpdate> variable_updates;
  std::vector<PlannedRowsUpdate> row_updates;
  std::vector<int> returns;  // values
  std::vector<PlannedAccumulation> accumulations;
};

// Verifies and plans a lowered graph. INVALID_ARGUMENT, with op and file:line, if it does not
// verify, if ids to pull depend on pulled values, if a variable gets updates of several kinds, or
// if servers are to compute in slices.
absl::StatusOr<Plan> MakePlan(const pb::FunctionProto& function, const PlanOptions& options);

}  // namespace mu
