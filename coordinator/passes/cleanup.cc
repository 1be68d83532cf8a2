// PruneDeadNodes, ShareCommonNodes, MergeUpdates, LowerFunction.
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/graph/op_table.h"
#include "common/graph/verifier.h"
#include "common/tensor/tensor.h"
#include "coordinator/frontend/trace_graph.h"
#include "coordinator/passes/passes.h"
#include "coordinator/passes/rewriter.h"

namespace mu {
namespace {

bool HasEffect(const pb::NodeProto& node) { return DefOf(node).has_effect(); }

// Equal for nodes that compute the same from the same inputs of the new graph.
std::string KeyOf(const pb::NodeProto& node, const Rewriter& rewriter) {
  std::string key = node.op();
  for (const pb::NodeInput& input : node.inputs()) {
    const pb::NodeInput mapped = rewriter.Map(input);
    absl::StrAppend(&key, "|", mapped.node(), ":", mapped.output());
  }
  const std::map<std::string, pb::AttrValue> sorted(node.attrs().begin(), node.attrs().end());
  for (const auto& [name, value] : sorted) {
    const std::string bytes = value.SerializeAsString();
    absl::StrAppend(&key, "|", name, "=", bytes.size(), ":", bytes);
  }
  return key;
}

}  // namespace

pb::FunctionProto PruneDeadNodes(const pb::FunctionProto& function) {
  std::vector<bool> live(function.nodes_size(), false);
  for (const pb::ReturnProto& value : function.returns()) live[value.value().node()] = true;
  for (int i = function.nodes_size() - 1; i >= 0; --i) {
    if (HasEffect(function.nodes(i))) live[i] = true;
    if (!live[i]) continue;
    for (const pb::NodeInput& input : function.nodes(i).inputs()) live[input.node()] = true;
  }
  Rewriter rewriter(function);
  for (int i = 0; i < function.nodes_size(); ++i) {
    if (live[i]) rewriter.Copy(i);
  }
  return rewriter.Finish();
}

pb::FunctionProto ShareCommonNodes(const pb::FunctionProto& function) {
  Rewriter rewriter(function);
  std::map<std::string, int> first;
  for (int i = 0; i < function.nodes_size(); ++i) {
    const pb::NodeProto& node = function.nodes(i);
    if (!HasEffect(node)) {
      const auto [known, added] = first.emplace(KeyOf(node, rewriter), i);
      if (!added) {
        pb::NodeInput earlier;
        earlier.set_node(known->second);
        rewriter.Replace(i, rewriter.Map(earlier));
        continue;
      }
    }
    rewriter.Copy(i);
  }
  return rewriter.Finish();
}

pb::NodeInput Share(Rewriter* rewriter, size_t updates, const pb::NodeProto& of) {
  const float share = 1 / static_cast<float>(updates);
  return rewriter->Emit("constant", {},
                        Attrs().Value("value", Tensor::Scalar<float>(share).ToProto()),
                        of.location());
}

pb::FunctionProto MergeUpdates(const pb::FunctionProto& function) {
  Rewriter rewriter(function);
  std::map<std::string, size_t> known;    // "op id" to its place in `updates`
  std::vector<std::vector<int>> updates;  // nodes of one update, in order
  for (int i = 0; i < function.nodes_size(); ++i) {
    const pb::NodeProto& node = function.nodes(i);
    if (!HasEffect(node) || DefOf(node).parameter != OpParameter::kVariable) {
      rewriter.Copy(i);
      continue;
    }
    const std::string key = absl::StrCat(node.op(), " ", node.attrs().at("id").i());
    const auto [place, added] = known.emplace(key, updates.size());
    if (added) updates.emplace_back();
    if (node.op() == "assign") updates[place->second].clear();  // the last one counts
    updates[place->second].push_back(i);
  }
  for (const std::vector<int>& nodes : updates) {
    const pb::NodeProto& first = function.nodes(nodes[0]);
    std::vector<pb::NodeInput> merged;
    for (int k = 0; k < first.inputs_size(); ++k) {
      // Rows and what they get, and factors of a product, one after the other; else the updates'
      // sum.
      if (first.inputs_size() > 1 && nodes.size() > 1) {
        std::vector<pb::NodeInput> all;
        for (const int node : nodes) all.push_back(rewriter.Map(function.nodes(node).inputs(k)));
        merged.push_back(rewriter.Emit("concat", all, Attrs().Int("axis", 0), first.location()));
        continue;
      }
      merged.push_back(rewriter.Map(first.inputs(k)));
      for (size_t i = 1; i < nodes.size(); ++i) {
        const pb::NodeProto& next = function.nodes(nodes[i]);
        merged.back() = rewriter.Emit("add", {merged.back(), rewriter.Map(next.inputs(k))}, {},
                                      next.location());
      }
      // The server moves the variable towards what it is sent.
      if (const auto moving = first.attrs().find("moving");
          nodes.size() > 1 && moving != first.attrs().end() && moving->second.b())
        merged.back() =
            rewriter.Emit("multiply", {merged.back(), Share(&rewriter, nodes.size(), first)}, {},
                          first.location());
    }
    rewriter.Emit(first.op(), merged, first.attrs(), first.location());
  }
  return rewriter.Finish();
}

absl::StatusOr<pb::FunctionProto> LowerFunction(const pb::FunctionProto& function,
                                                const GradientOptions& options) {
  // Sharing before lowering lets lookups of the same ids share positions.
  const pb::FunctionProto cleaned = MergeUpdates(PruneDeadNodes(ShareCommonNodes(function)));
  MU_ASSIGN_OR_RETURN(const pb::FunctionProto lowered, LowerEmbeddings(cleaned));
  const pb::FunctionProto accumulated = AccumulateGradients(lowered);
  return PruneDeadNodes(ShareCommonNodes(AdjustGradients(accumulated, options)));
}

}  // namespace mu
