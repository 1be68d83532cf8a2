// PlaceProducts.
#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/graph/op_table.h"
#include "common/graph/verifier.h"
#include "coordinator/frontend/trace_graph.h"
#include "coordinator/passes/passes.h"
#include "coordinator/passes/rewriter.h"

namespace mu {
namespace {

bool IsProduct(const std::string& op) {
  return op == "sharded_matmul" || op == "sharded_matmul_back" || op == "apply_product_gradient";
}

uint32_t VariableOf(const pb::NodeProto& node) {
  return static_cast<uint32_t>(node.attrs().at("id").i());
}

// Variables that get updates of another kind than gradients of products.
std::set<uint32_t> OtherwiseUpdated(const pb::FunctionProto& function) {
  std::set<uint32_t> updated;
  for (const pb::NodeProto& node : function.nodes()) {
    const OpDef& def = DefOf(node);
    if (def.has_effect() && def.parameter == OpParameter::kVariable && !IsProduct(node.op()))
      updated.insert(VariableOf(node));
  }
  return updated;
}

// Variables with products through which a gradient goes.
std::set<uint32_t> TrainedByProducts(const pb::FunctionProto& function) {
  std::set<uint32_t> trained;
  for (const pb::NodeProto& node : function.nodes()) {
    if (IsProduct(node.op()) && node.op() != "sharded_matmul") trained.insert(VariableOf(node));
  }
  return trained;
}

// Reads the variables of some products, which the worker computes then.
class ReadPass {
 public:
  ReadPass(const pb::FunctionProto& old, const std::set<uint32_t>& read)
      : old_(old), read_(read), rewriter_(old) {}

  pb::FunctionProto Run(std::vector<pb::NodeInput>* losses) {
    for (int i = 0; i < old_.nodes_size(); ++i) {
      const pb::NodeProto& node = old_.nodes(i);
      if (IsProduct(node.op()) && read_.contains(VariableOf(node))) {
        Replace(i, node);
      } else {
        rewriter_.Copy(i);
      }
    }
    for (pb::NodeInput& loss : *losses) loss = rewriter_.Map(loss);
    return rewriter_.Finish();
  }

 private:
  pb::NodeInput Multiply(const pb::NodeProto& node, const pb::NodeInput& a, const pb::NodeInput& b,
                         bool transpose_a, bool transpose_b) {
    return rewriter_.Emit("matmul", {a, b},
                          Attrs().Bool("transpose_a", transpose_a).Bool("transpose_b", transpose_b),
                          node.location());
  }

  void Replace(int i, const pb::NodeProto& node) {
    const pb::NodeInput first = rewriter_.Map(node.inputs(0));
    if (node.op() == "apply_product_gradient") {  // of dy and x
      const pb::NodeInput x = rewriter_.Map(node.inputs(1));
      rewriter_.Emit("apply_gradient", {Multiply(node, first, x, true, false)}, node.attrs(),
                     node.location());
      return;
    }
    const pb::NodeInput read = rewriter_.Emit("variable_read", {}, node.attrs(), node.location());
    rewriter_.Replace(i, Multiply(node, first, read, false, node.op() == "sharded_matmul"));
  }

  const pb::FunctionProto& old_;
  const std::set<uint32_t>& read_;
  Rewriter rewriter_;
};

// Gradients whose factors travel are whole on the servers only, and a step in slices has no one
// batch.
absl::Status CheckParts(const pb::FunctionProto& function, const GradientOptions& options) {
  for (int i = 0; i < function.nodes_size(); ++i) {
    const std::string& op = function.nodes(i).op();
    const bool of_rows = op == "scatter_add" || op == "scatter_update";
    if (function.micro_batches() > 1 && (IsProduct(op) || of_rows)) {
      return NodeError(function, i,
                       absl::InvalidArgumentError(
                           "cannot be computed in slices; leave micro_batches out, or read the "
                           "variable (ProductPlace::kWorker, AssignAdd, Assign)"));
    }
    if (options.any() && op == "apply_product_gradient") {
      return NodeError(
          function, i,
          absl::InvalidArgumentError(
              "is a gradient that only the servers know, so penalties, clipping and weight decay "
              "cannot change it; leave them out, or read the variable (ProductPlace::kWorker)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<pb::FunctionProto> PlaceProducts(const pb::FunctionProto& function,
                                                const GradientOptions& options,
                                                const std::map<uint32_t, ProductChoice>& products,
                                                std::vector<pb::NodeInput>* losses) {
  const bool changed = options.any() || function.micro_batches() > 1;
  const std::set<uint32_t> updated = OtherwiseUpdated(function);
  const std::set<uint32_t> trained = TrainedByProducts(function);
  std::set<uint32_t> read;
  for (const auto& [id, choice] : products) {
    if (choice.must) continue;
    const bool pays = choice.pays_in_training || !trained.contains(id);
    if (changed || updated.contains(id) || !pays) read.insert(id);
  }
  pb::FunctionProto placed = read.empty() ? function : ReadPass(function, read).Run(losses);
  MU_RETURN_IF_ERROR(CheckParts(placed, options));
  return placed;
}

}  // namespace mu
