#include "common/exec/nonfinite_report.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/exec/finite.h"
#include "common/graph/op_table.h"

namespace mu {
namespace {

// A value that leaves the step, or one of its slices, and what to call it.
struct Result {
  int value;
  int node;  // that returns or pushes it
  std::string what;
};

// The value that a slice computes: of rows, their gradients.
int ComputedOf(const PlannedAccumulation& accumulation) {
  return accumulation.inputs[accumulation.of_rows() ? 1 : 0];
}

std::string WhatIsAccumulated(const pb::FunctionProto& function, int node) {
  for (const pb::ReturnProto& value : function.returns()) {
    if (value.value().node() == node)
      return absl::StrCat("the returned value \"", value.name(), "\"");
  }
  for (const pb::NodeProto& user : function.nodes()) {
    const OpDef& def = DefOf(user);
    if (!def.has_effect() || user.inputs(user.inputs_size() - 1).node() != node) continue;
    const char* const kind = def.parameter == OpParameter::kVariable ? "variable" : "table";
    const char* const what = def.effect == OpEffect::kGradient ? "the gradient of "
                             : def.effect == OpEffect::kAdd    ? "what is added to "
                                                               : "what is assigned to ";
    return absl::StrCat(what, kind, " \"", user.attrs().at(kind).s(), "\"");
  }
  return "what is accumulated over the batch";
}

std::vector<Result> ResultsOf(const Plan& plan) {
  std::vector<Result> results;
  const auto attr = [&plan](int node, const char* name) {
    return plan.function.nodes(node).attrs().at(name).s();
  };
  for (size_t i = 0; i < plan.returns.size(); ++i) {
    results.push_back({plan.returns[i], plan.node_of[plan.returns[i]],
                       absl::StrCat("the returned value \"",
                                    plan.function.returns(static_cast<int>(i)).name(), "\"")});
  }
  for (const PlannedVariableUpdate& update : plan.variable_updates) {
    const OpEffect effect = DefOf(plan.function.nodes(update.node)).effect;
    const char* kind = effect == OpEffect::kGradient ? "the gradient of"
                       : effect == OpEffect::kAdd    ? "what is added to"
                                                     : "what is assigned to";
    results.push_back({update.value, update.node,
                       absl::StrCat(kind, " variable \"", attr(update.node, "variable"), "\"")});
  }
  for (const PlannedRowsUpdate& update : plan.row_updates) {
    results.push_back({update.gradients, update.node,
                       absl::StrCat("the gradient of table \"", attr(update.node, "table"), "\"")});
  }
  if (plan.part != PlanPart::kSlice) return results;
  for (const PlannedAccumulation& accumulation : plan.accumulations) {
    results.push_back({ComputedOf(accumulation), accumulation.node,
                       WhatIsAccumulated(plan.function, accumulation.node)});
  }
  return results;
}

std::string DescribeSource(const pb::NodeProto& node) {
  const OpDef& def = DefOf(node);
  if (def.reads_parameter()) {
    const char* kind = def.parameter == OpParameter::kVariable ? "variable" : "table";
    return absl::StrCat(kind, " \"", node.attrs().at(kind).s(), "\" holds ");
  }
  if (def.source == OpSource::kColumn) {
    return absl::StrCat("column \"", node.attrs().at("column").s(), "\" of the batch holds ");
  }
  if (node.inputs_size() == 0) return "its value is ";
  return "makes ";
}

// What to do about the first value that is not finite: the inputs of its op were.
std::string RemedyFor(const pb::NodeProto& node, const std::string& kind) {
  const std::string& op = node.op();
  const bool nan = kind == "NaN";
  if (op == "log") {
    return nan ? "It is the logarithm of a negative number: keep its input above 0"
               : "It is the logarithm of 0: add a small number to its input, or bound it from "
                 "below";
  }
  if (op == "log1p") {
    return nan ? "It is the logarithm of 1 + x for an x below -1: keep its input above -1"
               : "It is the logarithm of 1 + x for x = -1: bound its input from below";
  }
  if (op == "pow") {
    return nan ? "It is a negative number to a power that is no whole number: keep the base from "
                 "falling below 0"
               : "It is 0 to a negative power, or a power beyond the largest number: bound the "
                 "base "
                 "from below and above";
  }
  if (op == "sqrt" && nan)
    return "It is the square root of a negative number: keep its input from falling below 0";
  if (op == "divide") {
    return nan ? "It is 0 divided by 0: add a small number to the divisor, or bound it from below"
               : "It is a division by 0, or by a number that is very small: add a small number to "
                 "the divisor, or bound it from below";
  }
  if (DefOf(node).source == OpSource::kColumn) return "Look at the data";
  return "A lower learning rate or smaller inputs may help";
}

// The nodes that `node` depends on, itself included.
std::vector<bool> Ancestors(const pb::FunctionProto& function, int node) {
  std::vector<bool> found(function.nodes_size(), false);
  found[node] = true;
  for (int i = node; i >= 0; --i) {
    if (!found[i]) continue;
    for (const pb::NodeInput& input : function.nodes(i).inputs()) found[input.node()] = true;
  }
  return found;
}

// Computes the step again without fusion and with a buffer for every value; returns the first value
// that is not finite and that the `bad` one depends on, or -1, and its view's name in `kind`.
absl::StatusOr<int> FirstNonFinite(const Plan& plan, const Run& run, const StepInputs& inputs,
                                   int bad, std::string* kind) {
  MU_ASSIGN_OR_RETURN(
      const Plan slow,
      MakePlan(plan.function, {.fuse = false, .reuse = false, .fold = false, .part = plan.part}));
  Run again(slow);
  MU_RETURN_IF_ERROR(again.Begin(inputs));
  MU_RETURN_IF_ERROR(again.PreparePull());
  for (size_t i = 0; i < again.variables.size(); ++i) {
    std::memcpy(again.variables[i].out, run.variables[i].out, plan.variables[i].bytes);
  }
  for (size_t i = 0; i < again.rows.size(); ++i) {
    const size_t bytes = again.rows[i].ids.size() * plan.rows[i].dim * sizeof(float);
    if (bytes > 0) std::memcpy(again.rows[i].out, run.rows[i].out, bytes);
  }
  // What servers have computed is there, too.
  MU_RETURN_IF_ERROR(again.Compute([&](absl::Span<const ProductRead> products) {
    for (const PlannedProduct& planned : slow.products) {
      for (const ProductRead& product : products) {
        const View& view = run.value(planned.value);
        if (product.out == again.value(planned.value).data && view.bytes() > 0)
          std::memcpy(product.out, view.data, view.bytes());
      }
    }
    return absl::OkStatus();
  }));
  const std::vector<bool> relevant = Ancestors(plan.function, plan.node_of[bad]);
  for (int value = 0; value <= bad; ++value) {
    const View& view = again.value(value);
    if (!relevant[slow.node_of[value]] || view.data == nullptr || AllFinite(view)) continue;
    *kind = NameOfNonFinite(view);
    return value;
  }
  return -1;
}

double Largest(const View& view) {
  double largest = 0;
  for (int64_t i = 0; i < view.elements(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(view.as<float>()[i])));
  return largest;
}

// What no element of an update is beyond that servers compute from what the step pushes; NaN if
// something of that is none. Each of them looks at its part only, so one would refuse what others
// have applied.
double Bound(const PlannedVariableUpdate& update, const Run& run) {
  const View& value = run.value(update.value);
  if (value.dtype != kFloat32 || value.shape.rank() == 0) return 0;
  if (update.kind == VariableWrite::kScatterAdd) {
    return Largest(value) * static_cast<double>(value.shape[0]);
  }
  if (update.kind != VariableWrite::kProductGradient) return 0;
  const View& x = run.value(update.other);
  if (!AllFinite(x)) return std::numeric_limits<double>::quiet_NaN();
  return Largest(value) * Largest(x) * static_cast<double>(value.shape[0]);
}

absl::Status CheckBounds(const Plan& plan, const Run& run) {
  for (const PlannedVariableUpdate& update : plan.variable_updates) {
    if (Bound(update, run) < std::numeric_limits<float>::max()) continue;
    return NodeError(
        plan.function, update.node,
        absl::InvalidArgumentError(absl::StrCat(
            "what servers would compute for variable \"",
            plan.function.nodes(update.node).attrs().at("variable").s(),
            "\" may be beyond the largest number; nothing of this step was applied. A lower "
            "learning rate or smaller inputs may help")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStepIsFinite(const Plan& plan, const Run& run, const StepInputs& inputs) {
  bool finite = true;
  for (const int value : plan.returns) finite = finite && AllFinite(run.value(value));
  for (const PlannedVariableUpdate& update : plan.variable_updates) {
    finite = finite && AllFinite(run.value(update.value));
  }
  for (const PlannedRowsUpdate& update : plan.row_updates)
    finite = finite && AllFinite(run.value(update.gradients));
  if (plan.part == PlanPart::kSlice) {
    for (const PlannedAccumulation& accumulation : plan.accumulations)
      finite = finite && AllFinite(run.value(ComputedOf(accumulation)));
  }
  if (finite) return CheckBounds(plan, run);

  for (const Result& result : ResultsOf(plan)) {
    const View& view = run.value(result.value);
    if (AllFinite(view)) continue;
    std::string kind = NameOfNonFinite(view);
    // What the finish gets was finite in all slices.
    const absl::StatusOr<int> first = plan.part == PlanPart::kFinish
                                          ? -1
                                          : FirstNonFinite(plan, run, inputs, result.value, &kind);
    const int node = first.ok() && *first >= 0 ? plan.node_of[*first] : result.node;
    return NodeError(
        plan.function, node,
        absl::InvalidArgumentError(absl::StrCat(
            DescribeSource(plan.function.nodes(node)), kind, ", which reaches ", result.what,
            "; nothing of this step was applied. ", RemedyFor(plan.function.nodes(node), kind))));
  }
  return absl::OkStatus();
}

}  // namespace mu
