#include <map>

#include "common/graph/op_table.h"
#include "common/graph/verifier.h"
#include "coordinator/frontend/trace_graph.h"
#include "coordinator/passes/passes.h"
#include "coordinator/passes/rewriter.h"

namespace mu {
namespace {

using Reference = std::pair<int, int>;  // node and output, of the old graph

Reference Of(const pb::NodeInput& input) { return {input.node(), input.output()}; }

// Of a table and to be replaced; pull_rows and push_rows, which are there already if a graph is
// lowered again, are not.
bool UsesTable(const pb::NodeProto& node) {
  const OpDef& def = DefOf(node);
  return def.parameter == OpParameter::kTable && def.traced_only;
}
bool IsLookup(const pb::NodeProto& node) {
  return UsesTable(node) && DefOf(node).reads_parameter();
}
bool IsGradient(const pb::NodeProto& node) {
  return UsesTable(node) && DefOf(node).effect == OpEffect::kGradient;
}

// What the function does with one table.
struct TableUse {
  const pb::NodeProto* first = nullptr;  // the lookup that names it first
  std::map<Reference, int>
      positions;  // of each input with ids: which output of unique holds its positions
  std::vector<pb::NodeInput> ids;  // old references, in the order of unique's inputs
  pb::NodeInput unique;            // of the new graph, from here on
  pb::NodeInput rows;
  pb::NodeInput gradient;
  bool has_gradient = false;
  pb::SourceLocation gradient_location;
};

class Lowering {
 public:
  explicit Lowering(const pb::FunctionProto& old) : old_(old), rewriter_(old) {}

  absl::StatusOr<pb::FunctionProto> Run() {
    CollectUses();
    MU_RETURN_IF_ERROR(CheckIds());
    CopyWhatIdsNeed();
    for (const uint64_t id : order_) EmitPull(uses_[id]);
    for (int i = 0; i < old_.nodes_size(); ++i) {
      if (rewriter_.IsDone(i)) continue;
      const pb::NodeProto& node = old_.nodes(i);
      if (IsLookup(node)) {
        rewriter_.Replace(i, EmitLookup(node));
      } else if (IsGradient(node)) {
        EmitGradient(node);
      } else {
        rewriter_.Copy(i);
      }
    }
    for (const uint64_t id : order_) EmitPush(uses_[id]);
    return rewriter_.Finish();
  }

 private:
  static uint64_t TableOf(const pb::NodeProto& node) {
    return static_cast<uint64_t>(node.attrs().at("id").i());
  }

  static std::string CombinerOf(const pb::NodeProto& node) {
    const auto found = node.attrs().find("combiner");
    return found == node.attrs().end() ? "none" : found->second.s();
  }

  void CollectUses() {
    for (const pb::NodeProto& node : old_.nodes()) {
      if (!UsesTable(node)) continue;
      const auto [place, added] = uses_.try_emplace(TableOf(node));
      TableUse& use = place->second;
      if (added) {
        order_.push_back(place->first);
        use.first = &node;
      }
      const pb::NodeInput& ids = node.inputs(0);
      if (use.positions.emplace(Of(ids), static_cast<int>(use.ids.size()) + 1).second) {
        use.ids.push_back(ids);
      }
    }
  }

  // A step pulls once, so which rows it pulls cannot depend on what it pulls.
  absl::Status CheckIds() {
    std::vector<bool> pulled(old_.nodes_size(), false);
    for (int i = 0; i < old_.nodes_size(); ++i) {
      const pb::NodeProto& node = old_.nodes(i);
      pulled[i] = DefOf(node).reads_parameter();
      for (const pb::NodeInput& input : node.inputs())
        pulled[i] = pulled[i] || pulled[input.node()];
      if (UsesTable(node) && pulled[node.inputs(0).node()]) {
        return NodeError(
            old_, i,
            absl::InvalidArgumentError(
                "ids depend on a variable or on rows of a table; a step reads all of them at "
                "once, so ids must come from the batch, arguments and constants"));
      }
    }
    return absl::OkStatus();
  }

  void CopyWhatIdsNeed() {
    std::vector<bool> first(old_.nodes_size(), false);
    for (const auto& [id, use] : uses_) {
      for (const pb::NodeInput& ids : use.ids) first[ids.node()] = true;
    }
    for (int i = old_.nodes_size() - 1; i >= 0; --i) {
      if (!first[i]) continue;
      for (const pb::NodeInput& input : old_.nodes(i).inputs()) first[input.node()] = true;
    }
    for (int i = 0; i < old_.nodes_size(); ++i) {
      if (first[i]) rewriter_.Copy(i);
    }
  }

  static AttrMap RowAttrs(const pb::NodeProto& lookup) {
    AttrMap attrs = lookup.attrs();
    attrs.erase("combiner");
    return attrs;
  }

  void EmitPull(TableUse& use) {
    std::vector<pb::NodeInput> ids;
    for (const pb::NodeInput& input : use.ids) ids.push_back(rewriter_.Map(input));
    use.unique = rewriter_.Emit("unique", ids, {}, use.first->location());
    use.rows =
        rewriter_.Emit("pull_rows", {use.unique}, RowAttrs(*use.first), use.first->location());
  }

  pb::NodeInput PositionsOf(const TableUse& use, const pb::NodeProto& node) {
    return OutputOf(use.unique, use.positions.at(Of(node.inputs(0))));
  }

  pb::NodeInput EmitLookup(const pb::NodeProto& node) {
    const TableUse& use = uses_.at(TableOf(node));
    std::vector<pb::NodeInput> inputs = {use.rows, PositionsOf(use, node)};
    const std::string combiner = CombinerOf(node);
    if (combiner == "none") {
      return rewriter_.Emit("gather", inputs, Attrs().Int("axis", 0), node.location());
    }
    for (int i = 1; i < node.inputs_size(); ++i) inputs.push_back(rewriter_.Map(node.inputs(i)));
    return rewriter_.Emit("segment_combine", inputs, Attrs().String("combiner", combiner),
                          node.location());
  }

  void EmitGradient(const pb::NodeProto& node) {
    TableUse& use = uses_.at(TableOf(node));
    const pb::NodeInput dy = rewriter_.Map(node.inputs(node.inputs_size() - 1));
    const std::string combiner = CombinerOf(node);
    pb::NodeInput gradient;
    if (combiner == "none") {
      gradient = rewriter_.Emit("gather_grad", {dy, PositionsOf(use, node), use.rows},
                                Attrs().Int("axis", 0), node.location());
    } else {
      std::vector<pb::NodeInput> inputs = {dy, PositionsOf(use, node),
                                           rewriter_.Map(node.inputs(1)), use.rows};
      if (node.inputs_size() == 4) inputs.push_back(rewriter_.Map(node.inputs(2)));
      gradient = rewriter_.Emit("segment_combine_grad", inputs,
                                Attrs().String("combiner", combiner), node.location());
    }
    use.gradient = use.has_gradient
                       ? rewriter_.Emit("add", {use.gradient, gradient}, {}, node.location())
                       : gradient;
    if (!use.has_gradient) use.gradient_location = node.location();
    use.has_gradient = true;
  }

  void EmitPush(const TableUse& use) {
    if (!use.has_gradient) return;
    rewriter_.Emit("push_rows", {use.unique, use.gradient}, RowAttrs(*use.first),
                   use.gradient_location);
  }

  const pb::FunctionProto& old_;
  Rewriter rewriter_;
  std::map<uint64_t, TableUse> uses_;
  std::vector<uint64_t> order_;  // tables, by first use
};

}  // namespace

absl::StatusOr<pb::FunctionProto> LowerEmbeddings(const pb::FunctionProto& function) {
  return Lowering(function).Run();
}

}  // namespace mu
