#include "coordinator/autodiff/gradients.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/graph/nearest_name.h"
#include "coordinator/autodiff/gradient_table.h"
#include "coordinator/frontend/ops.h"

namespace mu {
namespace {

// The gradients of one Minimize.
class Backward {
 public:
  Backward(TraceGraph& graph, const MinimizeRequest& request)
      : graph_(graph), request_(request), size_(request.loss.node() + 1) {}

  absl::Status Run() {
    MU_RETURN_IF_ERROR(CheckNames());
    FindPaths();
    if (!needed_[request_.loss.node()]) {
      return Refuse("minimize", request_.location,
                    "the loss depends on no trainable variable or table (which is trainable, not "
                    "frozen and has "
                    "an optimizer, its own or the coordinator's default)");
    }
    contributions_.resize(size_);
    {
      TraceGraph::LocationScope location(&graph_, request_.location);
      contributions_[request_.loss.node()].push_back(Operand(1.0f).Bind());
    }
    for (int node = size_ - 1; node >= 0; --node) {
      if (needed_[node] && !contributions_[node].empty()) MU_RETURN_IF_ERROR(Visit(node));
    }
    return ApplyAll();
  }

 private:
  absl::Status Refuse(const std::string& op, const pb::SourceLocation& location,
                      absl::string_view why) {
    TraceGraph::LocationScope scope(&graph_, location);
    return graph_.Fail(op, absl::InvalidArgumentError(why), {}).status();
  }

  const pb::NodeProto& Node(int index) { return graph_.proto().nodes(index); }

  absl::Status CheckNames() {
    std::vector<std::string> names;
    for (const auto& [id, variable] : graph_.variables()) names.push_back(variable.name());
    for (const auto& [id, table] : graph_.tables()) names.push_back(table.name());
    for (const std::string& wanted : request_.options.only) MU_RETURN_IF_ERROR(Find(wanted, names));
    for (const std::string& frozen : request_.options.frozen) {
      MU_RETURN_IF_ERROR(Find(frozen, names));
    }
    return absl::OkStatus();
  }

  absl::Status Find(const std::string& pattern, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (MatchesName(pattern, name)) return absl::OkStatus();
    }
    return Refuse("minimize", request_.location,
                  absl::StrCat("the function uses no variable or table \"", pattern, "\"",
                               DidYouMean(pattern, names)));
  }

  bool IsSelected(const std::string& name) const {
    const auto any = [&name](const std::vector<std::string>& patterns) {
      return std::any_of(patterns.begin(), patterns.end(),
                         [&](const std::string& pattern) { return MatchesName(pattern, name); });
    };
    const MinimizeOptions& options = request_.options;
    return (options.only.empty() || any(options.only)) && !any(options.frozen);
  }

  bool IsTrainable(const pb::NodeProto& node) {
    const OpDef& def = DefOf(node);
    if (!def.reads_parameter()) return false;
    const uint32_t id = static_cast<uint32_t>(node.attrs().at("id").i());
    if (def.parameter == OpParameter::kVariable) {
      const pb::VariableProto& variable = graph_.variables().at(id).proto();
      return variable.trainable() && variable.has_optimizer() && variable.dtype() == kFloat32 &&
             IsSelected(variable.name());
    }
    const pb::TableProto& table = graph_.tables().at(id).proto();
    return table.has_optimizer() && IsSelected(table.name());
  }

  // Which nodes' values lead from something trainable to a float: those before the loss whose
  // gradients are needed.
  void FindPaths() {
    needed_.assign(size_, false);
    for (int i = 0; i < size_; ++i) {
      const pb::NodeProto& node = Node(i);
      if (IsTrainable(node)) {
        needed_[i] = true;
        continue;
      }
      if (AllGradients().KindOf(node.op()) == GradientTable::Kind::kZero) continue;
      if (graph_.specs()[i].empty() || graph_.specs()[i][0].dtype != kFloat32) continue;
      for (const pb::NodeInput& input : node.inputs())
        needed_[i] = needed_[i] || needed_[input.node()];
    }
  }

  // Sums what has come to a node and passes it on to its inputs.
  absl::Status Visit(int index) {
    const pb::NodeProto& node = Node(index);
    TraceGraph::LocationScope location(&graph_, node.location());
    Sym dy = contributions_[index][0];
    for (size_t i = 1; i < contributions_[index].size(); ++i)
      dy = Add(dy, contributions_[index][i]);
    MU_RETURN_IF_ERROR(dy.status());
    contributions_[index] = {dy};

    std::vector<bool> wanted;
    bool any = false;
    for (const pb::NodeInput& input : node.inputs()) {
      wanted.push_back(needed_[input.node()]);
      any = any || wanted.back();
    }
    if (node.op() == "sharded_matmul") {
      if (!any) return absl::OkStatus();
      const Sym dx = graph_.Add("sharded_matmul_back", {dy}, node.attrs(), {});
      MU_RETURN_IF_ERROR(dx.status());
      contributions_[node.inputs(0).node()].push_back(dx);
      return absl::OkStatus();
    }
    if (DefOf(node).reads_parameter()) {
      return any ? Refuse(node.op(), node.location(),
                          "weights depend on something trainable, but weights of a bag get no "
                          "gradient")
                 : absl::OkStatus();
    }
    if (!any) return absl::OkStatus();
    return Differentiate(index, dy, std::move(wanted));
  }

  absl::Status Differentiate(int index, const Sym& dy, std::vector<bool> wanted) {
    const pb::NodeProto& node = Node(index);
    const GradientTable& table = AllGradients();
    if (table.KindOf(node.op()) == GradientTable::Kind::kNone) {
      return Refuse(node.op(), node.location(),
                    absl::StrCat("has no gradient: ", table.WhyNone(node.op())));
    }
    if (table.KindOf(node.op()) != GradientTable::Kind::kRule) {
      return Refuse(node.op(), node.location(), "has no gradient");
    }
    ForwardOp op{
        DefOf(node).Read(node.attrs()), {}, graph_.OutputOf(index, 0), dy, std::move(wanted)};
    for (const pb::NodeInput& input : node.inputs()) {
      op.inputs.push_back(graph_.OutputOf(input.node(), input.output()));
    }
    const std::vector<Sym> gradients = table.Rule(node.op())(op);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      MU_RETURN_IF_ERROR(gradients[i].status());
      // Nothing where only the input's shape matters.
      if (!op.wanted[i] || gradients[i].graph() == nullptr) continue;
      contributions_[node.inputs(static_cast<int>(i)).node()].push_back(gradients[i]);
    }
    return absl::OkStatus();
  }

  // The gradient of some rows is one of the variable, with zeros around it.
  absl::Status ApplyToRows(const pb::NodeProto& node, const Sym& gradient) {
    const AttrReader attrs = DefOf(node).Read(node.attrs());
    std::vector<int64_t> before(static_cast<size_t>(gradient.shape().rank()), 0), after = before;
    before[0] = attrs.Int("first");
    after[0] = attrs.GetShape("shape")[0] - attrs.Int("first") - attrs.Int("count");
    AttrMap whole = node.attrs();
    whole.erase("first");
    whole.erase("count");
    return graph_.AddEffect("apply_gradient", {Pad(gradient, before, after)}, whole, {});
  }

  absl::Status ApplyAll() {
    for (int i = 0; i < size_; ++i) {
      const pb::NodeProto& node = Node(i);
      if (!IsTrainable(node) || contributions_[i].empty()) continue;
      TraceGraph::LocationScope location(&graph_, node.location());
      const Sym& gradient = contributions_[i][0];
      if (node.op() == "sharded_matmul") {
        const Sym x = graph_.OutputOf(node.inputs(0).node(), node.inputs(0).output());
        MU_RETURN_IF_ERROR(
            graph_.AddEffect("apply_product_gradient", {gradient, x}, node.attrs(), {}));
      } else if (node.op() == "variable_rows") {
        MU_RETURN_IF_ERROR(ApplyToRows(node, gradient));
      } else if (DefOf(node).parameter == OpParameter::kVariable) {
        MU_RETURN_IF_ERROR(graph_.AddEffect("apply_gradient", {gradient}, node.attrs(), {}));
      } else {
        std::vector<Sym> inputs;
        for (const pb::NodeInput& input : node.inputs()) {
          inputs.push_back(graph_.OutputOf(input.node(), input.output()));
        }
        inputs.push_back(gradient);
        MU_RETURN_IF_ERROR(graph_.AddEffect("embedding_gradient", inputs, node.attrs(), {}));
      }
    }
    return absl::OkStatus();
  }

  TraceGraph& graph_;
  const MinimizeRequest& request_;
  const int size_;  // nodes up to the loss; gradients come after them
  std::vector<bool> needed_;
  std::vector<std::vector<Sym>>
      contributions_;  // gradients of a node's output, one per use, last use first
};

}  // namespace

absl::Status AddGradients(TraceGraph& graph) {
  TraceGraph::Scope scope(&graph);
  for (const MinimizeRequest& request : graph.minimize_requests()) {
    MU_RETURN_IF_ERROR(Backward(graph, request).Run());
  }
  graph.minimize_requests().clear();
  return absl::OkStatus();
}

}  // namespace mu
