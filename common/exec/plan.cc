#include "common/exec/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/exec/buffer_plan.h"
#include "common/exec/draft.h"
#include "common/exec/kernel_table.h"
#include "common/graph/op_table.h"

namespace mu {

absl::Status MakeKernel(const Draft& draft, DraftNode* node) {
  const pb::NodeProto& proto = draft.function->nodes(node->attrs_of);
  NodeSpec spec{proto, DefOf(proto).Read(proto.attrs()), {}, {}};
  for (const int value : node->inputs) spec.inputs.push_back(draft.specs[value]);
  for (int i = 0; i < node->outputs; ++i)
    spec.outputs.push_back(draft.specs[node->first_output + i]);
  const KernelFactory factory = AllKernels().Find(node->op);
  absl::StatusOr<KernelPtr> kernel = factory == nullptr ? NoKernel(spec) : factory(spec);
  if (!kernel.ok()) return NodeError(*draft.function, node->node, kernel.status());
  node->kernel = *std::move(kernel);
  return absl::OkStatus();
}

namespace {

// `parts`: it has two inputs.
VariableWrite::Kind KindOf(OpEffect effect, bool parts) {
  switch (effect) {
    case OpEffect::kAdd:
      return parts ? VariableWrite::kScatterAdd : VariableWrite::kAssignAdd;
    case OpEffect::kAssign:
      return parts ? VariableWrite::kScatterUpdate : VariableWrite::kAssign;
    default:
      return parts ? VariableWrite::kProductGradient : VariableWrite::kGradient;
  }
}

class Planner {
 public:
  Planner(const pb::FunctionProto& function, const PlanOptions& options) : options_(options) {
    plan_.function = function;
    plan_.part = options.part;
    draft_.function = &function;
  }

  absl::StatusOr<Plan> Make() {
    MU_RETURN_IF_ERROR(VerifyFunction(function(), GraphStage::kLowered));
    MU_ASSIGN_OR_RETURN(const FunctionSpecs specs, InferSpecs(function()));
    NumberValues(specs);
    FindNeeded();
    MU_RETURN_IF_ERROR(AddNodes());
    if (options_.fold) MU_RETURN_IF_ERROR(FoldConstants(&draft_));
    if (options_.fuse) MU_RETURN_IF_ERROR(FuseMatmuls(&draft_));
    MU_RETURN_IF_ERROR(OrderNodes());
    KeepUsedConstants();
    AssignBuffers(options_.reuse, &plan_);
    return std::move(plan_);
  }

 private:
  const pb::FunctionProto& function() const { return *draft_.function; }
  int Value(const pb::NodeInput& input) const {
    return first_value_[input.node()] + input.output();
  }
  int Input(const pb::NodeProto& node, int i) const { return Value(node.inputs(i)); }

  void NumberValues(const FunctionSpecs& specs) {
    for (size_t node = 0; node < specs.size(); ++node) {
      first_value_.push_back(static_cast<int>(plan_.specs.size()));
      for (const TensorSpec& spec : specs[node]) {
        plan_.specs.push_back(spec);
        plan_.node_of.push_back(static_cast<int>(node));
      }
    }
    draft_.specs = plan_.specs;
    draft_.constants.resize(plan_.specs.size());
    draft_.wanted.resize(plan_.specs.size(), false);
  }

  // Whether it accumulates, where the step is planned in two parts.
  bool IsSeam(const pb::NodeProto& node) const {
    return options_.part != PlanPart::kWhole && DefOf(node).source == OpSource::kSlices;
  }

  // Nodes that returns or effects depend on; the rest is left out. Of a step in two parts: up to
  // the accumulations, or from them.
  void FindNeeded() {
    const size_t count = function().nodes_size();
    std::vector<bool> finish(count, false), slice(count, false);
    for (const pb::ReturnProto& value : function().returns()) finish[value.value().node()] = true;
    for (int i = function().nodes_size() - 1; i >= 0; --i) {
      const pb::NodeProto& node = function().nodes(i);
      if (DefOf(node).has_effect()) finish[i] = true;
      if (finish[i] && IsSeam(node)) slice[i] = true;  // both have it
      for (const pb::NodeInput& input : node.inputs()) {
        if (slice[i]) slice[input.node()] = true;
        if (finish[i] && !IsSeam(node)) finish[input.node()] = true;
      }
    }
    needed_ = options_.part == PlanPart::kSlice ? slice : finish;
  }

  absl::Status AddNodes() {
    for (int i = 0; i < function().nodes_size(); ++i) {
      if (!needed_[i]) continue;
      const pb::NodeProto& node = function().nodes(i);
      MU_ASSIGN_OR_RETURN(const bool bound, AddBinding(i, node));
      if (bound) continue;
      DraftNode draft;
      draft.op = node.op();
      draft.node = draft.attrs_of = i;
      for (const pb::NodeInput& input : node.inputs()) draft.inputs.push_back(Value(input));
      draft.first_output = first_value_[i];
      const int next = i + 1 < function().nodes_size() ? first_value_[i + 1]
                                                       : static_cast<int>(plan_.specs.size());
      draft.outputs = next - draft.first_output;
      MU_RETURN_IF_ERROR(MakeKernel(draft_, &draft));
      draft_.nodes.push_back(std::move(draft));
    }
    if (options_.part == PlanPart::kSlice) return absl::OkStatus();
    for (const pb::ReturnProto& value : function().returns()) {
      plan_.returns.push_back(Value(value.value()));
      draft_.wanted[plan_.returns.back()] = true;
    }
    return absl::OkStatus();
  }

  // True if the node is one that the executor itself carries out.
  absl::StatusOr<bool> AddBinding(int i, const pb::NodeProto& node) {
    const OpDef& def = DefOf(node);
    if (def.has_kernel()) return false;
    const AttrReader attrs = def.Read(node.attrs());
    if (def.has_effect()) {
      MU_RETURN_IF_ERROR(AddUpdate(i, node, def, attrs));
      return true;
    }
    const int value = first_value_[i];
    switch (def.source) {
      case OpSource::kConstant: {
        absl::StatusOr<Tensor> tensor = Tensor::FromProto(attrs.TensorValue("value"));
        if (!tensor.ok()) return NodeError(function(), i, tensor.status());
        draft_.constants[value] = *std::move(tensor);
        break;
      }
      case OpSource::kArgument:
        plan_.args.push_back({i, value, static_cast<int>(attrs.Int("index")), attrs.Type("dtype")});
        break;
      case OpSource::kWorkerIndex:
        plan_.worker_indices.push_back(value);
        break;
      case OpSource::kColumn:
        plan_.columns.push_back({i, value, attrs.String("column"), plan_.specs[value]});
        break;
      case OpSource::kParameter:
        MU_RETURN_IF_ERROR(AddPull(i, node, def, attrs));
        break;
      case OpSource::kSlices:
        AddAccumulation(i, node, def, attrs);
        break;
      case OpSource::kNone:
        break;
    }
    return true;
  }

  absl::Status AddUpdate(int i, const pb::NodeProto& node, const OpDef& def,
                         const AttrReader& attrs) {
    const uint32_t id = static_cast<uint32_t>(attrs.Int("id"));
    for (int k = 0; k < node.inputs_size(); ++k) draft_.wanted[Input(node, k)] = true;
    if (def.parameter == OpParameter::kTable) {
      plan_.row_updates.push_back({i, id, attrs.Int("dim"), Input(node, 0), Input(node, 1)});
      return absl::OkStatus();
    }
    // Of two inputs: rows and what they get, or the factors of a gradient.
    const bool parts = node.inputs_size() == 2;
    const VariableWrite::Kind kind = KindOf(def.effect, parts);
    if (!updated_.emplace(id).second) {
      return NodeError(
          function(), i,
          absl::InvalidArgumentError(absl::StrCat(
              "variable \"", attrs.String("variable"),
              "\" gets updates of two kinds in one step (a gradient, a gradient of a product that "
              "servers compute, an addition, a new value, either of these for rows); use one of "
              "them")));
    }
    const bool rows = parts && def.effect != OpEffect::kGradient;
    const int value = rows ? Input(node, 1) : Input(node, 0);
    const int other = !parts ? -1 : rows ? Input(node, 0) : Input(node, 1);
    plan_.variable_updates.push_back({i, id, kind, value, attrs.GetShape("shape"), other});
    return absl::OkStatus();
  }

  void AddAccumulation(int i, const pb::NodeProto& node, const OpDef& def,
                       const AttrReader& attrs) {
    PlannedAccumulation& added = plan_.accumulations.emplace_back();
    added.node = i;
    added.sums = def.outputs == 1 && attrs.String("combine") == "sum";
    added.first_output = first_value_[i];
    for (int k = 0; k < node.inputs_size(); ++k) {
      added.inputs.push_back(Input(node, k));
      if (options_.part == PlanPart::kSlice) draft_.wanted[added.inputs.back()] = true;
    }
  }

  absl::Status AddPull(int i, const pb::NodeProto& node, const OpDef& def,
                       const AttrReader& attrs) {
    const uint32_t id = static_cast<uint32_t>(attrs.Int("id"));
    if (def.parameter == OpParameter::kVariable) {
      if (node.inputs_size() > 0) return AddProduct(i, node, id);
      const bool some = node.op() == "variable_rows";
      AddVariable(i, id, some ? attrs.Int("first") : 0, some ? attrs.Int("count") : -1,
                  first_value_[i]);
      return absl::OkStatus();
    }
    plan_.rows.push_back(
        {i, id, attrs.Int("dim"), Input(node, 0), first_value_[i], plan_.buffers++});
    draft_.wanted[Input(node, 0)] = true;
    return absl::OkStatus();
  }

  absl::Status AddProduct(int i, const pb::NodeProto& node, uint32_t id) {
    if (options_.part != PlanPart::kWhole) {
      return NodeError(function(), i,
                       absl::InvalidArgumentError("servers multiply no slices of a batch"));
    }
    const int value = first_value_[i];
    plan_.products.push_back({i, id, node.op() == "sharded_matmul_back",
                              plan_.specs[value].shape[1], Input(node, 0), value, plan_.buffers++,
                              0});
    draft_.wanted[Input(node, 0)] = true;
    return absl::OkStatus();
  }

  void AddVariable(int node, uint32_t id, int64_t first_row, int64_t rows, int value) {
    const auto [found, added] =
        variable_index_.emplace(std::make_tuple(id, first_row, rows), plan_.variables.size());
    if (added) {
      const TensorSpec& spec = plan_.specs[value];
      plan_.variables.push_back({id,
                                 first_row,
                                 rows,
                                 plan_.buffers++,
                                 spec.shape.elements() * ElementSize(spec.dtype),
                                 spec.shape,
                                 {},
                                 node});
    }
    plan_.variables[found->second].values.push_back(value);
  }

  // First what the ids to pull need, then the rest, each in the order of the graph.
  absl::Status OrderNodes() {
    std::vector<int> maker(plan_.specs.size(), -1);  // by value: index in draft_.nodes
    for (size_t i = 0; i < draft_.nodes.size(); ++i) {
      const DraftNode& node = draft_.nodes[i];
      for (int k = 0; k < node.outputs; ++k) maker[node.first_output + k] = static_cast<int>(i);
    }
    std::vector<bool> early_value(plan_.specs.size(), false);
    std::vector<bool> early(draft_.nodes.size(), false);
    for (const PlannedRows& rows : plan_.rows) early_value[rows.ids] = true;
    for (int i = static_cast<int>(draft_.nodes.size()) - 1; i >= 0; --i) {
      const DraftNode& node = draft_.nodes[i];
      for (int k = 0; k < node.outputs; ++k)
        early[i] = early[i] || early_value[node.first_output + k];
      if (!early[i]) continue;
      for (const int input : node.inputs) early_value[input] = true;
    }
    for (const PlannedVariable& variable : plan_.variables) {
      for (const int value : variable.values)
        MU_RETURN_IF_ERROR(CheckNotEarly(early_value, value, variable.node));
    }
    for (const PlannedRows& rows : plan_.rows) {
      MU_RETURN_IF_ERROR(CheckNotEarly(early_value, rows.value, rows.node));
    }
    for (const PlannedProduct& product : plan_.products)
      MU_RETURN_IF_ERROR(CheckNotEarly(early_value, product.value, product.node));
    const auto append = [&](bool first, int stage, const std::vector<int>& stages) {
      for (size_t i = 0; i < draft_.nodes.size(); ++i) {
        if (!draft_.nodes[i].removed && early[i] == first && (first || stages[i] == stage))
          Append(&draft_.nodes[i]);
      }
    };
    append(/*first=*/true, 0, {});
    plan_.id_nodes = static_cast<int>(plan_.nodes.size());
    const std::vector<int> stages = FindStages();
    const int last = stages.empty() ? 0 : *std::max_element(stages.begin(), stages.end());
    int products = 0;
    for (const PlannedProduct& product : plan_.products)
      products = std::max(products, product.stage + 1);
    for (int stage = 0; stage <= std::max(last, products); ++stage) {
      append(/*first=*/false, stage, stages);
      if (stage < products) plan_.stage_ends.push_back(static_cast<int>(plan_.nodes.size()));
    }
    return absl::OkStatus();
  }

  // How many calls for products, one after the other, each node waits for; those of the products
  // are set.
  std::vector<int> FindStages() {
    std::vector<int> of_value(plan_.specs.size(), 0), of_node(draft_.nodes.size(), 0);
    if (plan_.products.empty()) return of_node;
    // Fused nodes are not in the order of the graph: until nothing changes, at most once for each
    // product that waits for another one.
    for (bool changed = true; changed;) {
      changed = false;
      const auto raise = [&](int stage, int* to) {
        if (*to >= stage) return;
        *to = stage;
        changed = true;
      };
      for (PlannedProduct& product : plan_.products) {
        product.stage = of_value[product.x];
        raise(product.stage + 1, &of_value[product.value]);
      }
      for (size_t i = 0; i < draft_.nodes.size(); ++i) {
        const DraftNode& node = draft_.nodes[i];
        for (const int input : node.inputs) raise(of_value[input], &of_node[i]);
        for (int k = 0; k < node.outputs; ++k) raise(of_node[i], &of_value[node.first_output + k]);
      }
    }
    return of_node;
  }

  absl::Status CheckNotEarly(const std::vector<bool>& early_value, int value, int node) const {
    if (!early_value[value]) return absl::OkStatus();
    return NodeError(
        function(), node,
        absl::InvalidArgumentError(
            "the ids of a lookup depend on this, but a step pulls only once; ids may depend on "
            "the batch, arguments and constants"));
  }

  void Append(DraftNode* node) {
    PlannedNode planned;
    planned.node = node->node;
    planned.kernel = std::move(node->kernel);
    planned.inputs = node->inputs;
    planned.first_output = node->first_output;
    planned.places.resize(node->outputs);
    plan_.nodes.push_back(std::move(planned));
  }

  void KeepUsedConstants() {
    std::vector<bool> used = draft_.wanted;
    for (const PlannedNode& node : plan_.nodes) {
      for (const int input : node.inputs) used[input] = true;
    }
    for (size_t v = 0; v < used.size(); ++v) {
      if (used[v] && draft_.IsConstant(static_cast<int>(v))) {
        plan_.constants.emplace_back(static_cast<int>(v), std::move(draft_.constants[v]));
      }
    }
  }

  const PlanOptions options_;
  Plan plan_;
  Draft draft_;
  std::vector<int> first_value_;  // by node
  std::vector<bool> needed_;      // by node
  std::set<uint32_t> updated_;
  std::map<std::tuple<uint32_t, int64_t, int64_t>, size_t> variable_index_;
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const pb::FunctionProto& function, const PlanOptions& options) {
  return Planner(function, options).Make();
}

}  // namespace mu
