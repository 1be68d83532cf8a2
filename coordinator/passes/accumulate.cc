// What a step with micro batches accumulates over the slices of its batch: what it returns and adds
// to variables (AccumulateResults), and gradients (AccumulateGradients).
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/op_table.h"
#include "common/graph/slice_rules.h"
#include "common/graph/verifier.h"
#include "common/tensor/tensor.h"
#include "coordinator/frontend/trace_graph.h"
#include "coordinator/passes/passes.h"
#include "coordinator/passes/record_degree.h"
#include "coordinator/passes/rewriter.h"

namespace mu {
namespace {

constexpr char kRemedy[] =
    "; or take it from a function without micro_batches, or train without them";

absl::StatusOr<std::string> CombineOf(const std::string& what, const RecordDegree& degree,
                                      const TensorSpec& spec) {
  if (!spec.shape.IsFullyKnown()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has an entry for each record, ", spec.ToString(),
                     ", so that the slices of micro_batches cannot be put together: take its mean "
                     "or sum over the records",
                     kRemedy));
  }
  const bool known = degree.degree == 0 || degree.degree == 1;
  const bool is_sum = degree.degree == 1;
  // What has an offset as well has an error of its own below.
  if (!known || degree.extreme || (is_sum && degree.nonlinear && !degree.offset)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what,
                     " is neither a mean nor a sum over the batch's records, so that its value for "
                     "the batch does not follow from those of the slices of micro_batches: take "
                     "means (ReduceMean) and sums (ReduceSum), and compute the rest of what was "
                     "fetched",
                     kRemedy));
  }
  if (is_sum && degree.offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        what,
        " is a sum over the batch's records and something else that does not depend on "
        "them, which each slice of micro_batches would bring once more: take the sum "
        "alone (AssignAdd adds it to a variable)",
        kRemedy));
  }
  if (spec.dtype == kFloat32 || (is_sum && (spec.dtype == kInt32 || spec.dtype == kInt64)))
    return is_sum ? "sum" : "mean";
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", spec.ToString(), ", which the slices of micro_batches have no ",
                   is_sum ? "sum" : "mean", " of: Cast it to float32", kRemedy));
}

class ResultsPass {
 public:
  ResultsPass(const pb::FunctionProto& old, const FunctionSpecs& specs)
      : old_(old), specs_(specs), degrees_(RecordDegreesOf(old, specs)), rewriter_(old) {}

  absl::Status CheckLoss(const pb::NodeInput& loss) const {
    const int node = loss.node();
    if (!degrees_[node].varies || degrees_[node].degree == 0) return absl::OkStatus();
    const bool is_sum = degrees_[node].degree == 1;
    return NodeError(
        old_, node,
        absl::InvalidArgumentError(absl::StrCat(
            "is minimized with micro_batches, but is ", is_sum ? "a sum" : "no mean",
            " over the batch's records: the gradients of slices are averaged, so take the mean "
            "over the records (ReduceMean, or a sum divided by the Count of its records)")));
  }

  absl::StatusOr<pb::FunctionProto> Run() {
    for (int i = 0; i < old_.nodes_size(); ++i) {
      const pb::NodeProto& node = old_.nodes(i);
      const OpEffect effect = DefOf(node).effect;
      if (effect != OpEffect::kAdd && effect != OpEffect::kAssign) {
        rewriter_.Copy(i);
        continue;
      }
      const std::string what =
          absl::StrCat(effect == OpEffect::kAdd ? "what is added" : "what is assigned",
                       " to variable \"", node.attrs().at("variable").s(), "\"");
      auto delta = Accumulated(node.inputs(0), what);
      if (!delta.ok()) return NodeError(old_, i, delta.status());
      rewriter_.Emit(node.op(), {*delta}, node.attrs(), node.location());
    }
    std::vector<pb::NodeInput> returns;
    for (const pb::ReturnProto& value : old_.returns()) {
      auto accumulated =
          Accumulated(value.value(), absl::StrCat("the returned value \"", value.name(), "\""));
      if (!accumulated.ok()) return NodeError(old_, value.value().node(), accumulated.status());
      returns.push_back(*accumulated);
    }
    pb::FunctionProto made = rewriter_.Finish();
    for (size_t i = 0; i < returns.size(); ++i)
      *made.mutable_returns(static_cast<int>(i))->mutable_value() = returns[i];
    return made;
  }

 private:
  absl::StatusOr<pb::NodeInput> Accumulated(const pb::NodeInput& old, const std::string& what) {
    const RecordDegree& degree = degrees_[old.node()];
    if (!degree.varies) return rewriter_.Map(old);
    MU_ASSIGN_OR_RETURN(std::string combine,
                        CombineOf(what, degree, specs_[old.node()][old.output()]));
    // Means are averaged whatever they are of; sums are exact.
    const bool composed = degree.degree == 1 && degree.composed;
    const bool entangled = degree.degree == 1 && degree.entangled;
    if (degree.HasCounts()) {
      auto made = FromSums(old, what);
      // A sum of what is divided by the list's count is a mean of the list, 0 of none: as others,
      // it is averaged.
      if (made.ok() ? !entangled : degree.CountsNoneAsOne()) return made;
    }
    if (entangled) {
      return absl::InvalidArgumentError(absl::StrCat(
          what,
          " adds up values of records that have a mean or sum over the batch's records in them, of "
          "which each slice of micro_batches has its own: take sums of what each record has for "
          "itself, and compute the rest of them",
          kRemedy));
    }
    if (composed) return FromSums(old, what);
    return Combine(rewriter_.Map(old), std::move(combine), old_.nodes(old.node()));
  }

  // As of the whole batch: the sums of what the slices have are taken, and what is made of them
  // comes after the last slice. So a product of two sums is that of the batch's. A slice that has
  // none of a list's values would count 1 of them: "at least 1" comes after the last slice as well.
  absl::StatusOr<pb::NodeInput> FromSums(const pb::NodeInput& old, const std::string& what) {
    if (!degrees_[old.node()].varies) return rewriter_.Map(old);
    const std::pair<int, int> key(old.node(), old.output());
    auto found = from_sums_.find(key);
    if (found == from_sums_.end()) {
      MU_ASSIGN_OR_RETURN(const pb::NodeInput made, MakeFromSums(old, what));
      found = from_sums_.emplace(key, made).first;
    }
    return found->second;
  }

  absl::StatusOr<pb::NodeInput> MakeFromSums(const pb::NodeInput& old, const std::string& what) {
    const pb::NodeProto& node = old_.nodes(old.node());
    const OpDef& def = DefOf(node);
    if (node.op() == "count" && degrees_[old.node()].degree == 1)
      return SizeOfAll(rewriter_.Map(node.inputs(0)), node);
    bool of_slice = def.source != OpSource::kNone || def.random;
    for (const pb::NodeInput& input : node.inputs()) of_slice |= UnknownAxes(input) > 0;
    if (of_slice) return OverSlices(old, what);
    std::vector<pb::NodeInput> inputs;
    for (const pb::NodeInput& input : node.inputs()) {
      MU_ASSIGN_OR_RETURN(inputs.emplace_back(), FromSums(input, what));
    }
    return OutputOf(rewriter_.Emit(node.op(), inputs, node.attrs(), node.location()), old.output());
  }

  // What a slice's records give. A mean is a sum divided by a size: slices may have as many records
  // and not as many values of a list.
  absl::StatusOr<pb::NodeInput> OverSlices(const pb::NodeInput& old, const std::string& what) {
    const pb::NodeProto& node = old_.nodes(old.node());
    const RecordDegree& degree = degrees_[old.node()];
    if (degree.CountsNoneAsOne()) return DependsOnCount(what, "what has an entry for each record");
    bool of_list = false;
    bool of_each = true;  // of elements that do not grow with the records
    for (const pb::NodeInput& input : node.inputs()) {
      of_list |= degrees_[input.node()].may_be_empty && UnknownAxes(input) > 0;
      of_each &= degrees_[input.node()].degree == 0 && UnknownAxes(input) <= 1;
    }
    if (of_each && node.op() == "reduce_mean")
      return MeanOfAll(rewriter_.Map(node.inputs(0)), node);
    if (of_each && node.op() == "mean_squared_error") {
      const pb::NodeInput difference =
          rewriter_.Emit("subtract", {rewriter_.Map(node.inputs(0)), rewriter_.Map(node.inputs(1))},
                         {}, node.location());
      return MeanOfAll(rewriter_.Emit("square", {difference}, {}, node.location()), node);
    }
    MU_ASSIGN_OR_RETURN(std::string combine,
                        CombineOf(what, degree, specs_[old.node()][old.output()]));
    // A count here is of axes of known sizes, the same in all slices.
    if (of_list && node.op() != "count" && (!of_each || combine != "sum")) {
      return DependsOnCount(what, absl::StrCat("a \"", node.op(),
                                               "\" of a list that is neither the mean nor the sum "
                                               "of what each value has for itself"));
    }
    return Combine(rewriter_.Map(old), std::move(combine), node);
  }

  // Of x along the axes of `place`, a reduction, in all slices.
  pb::NodeInput MeanOfAll(const pb::NodeInput& x, const pb::NodeProto& place) {
    AttrMap attrs;
    if (place.op() == "reduce_mean") attrs = place.attrs();
    const pb::NodeInput sum = Combine(
        rewriter_.Emit("reduce_sum", {x}, std::move(attrs), place.location()), "sum", place);
    return rewriter_.Emit("divide", {sum, SizeOfAll(x, place)}, {}, place.location());
  }

  // At least 1.
  pb::NodeInput SizeOfAll(const pb::NodeInput& x, const pb::NodeProto& place) {
    AttrMap attrs;
    const auto axes = place.attrs().find("axes");
    if (axes != place.attrs().end()) attrs["axes"] = axes->second;
    attrs["at_least_one"].set_b(false);
    const pb::NodeInput sum =
        Combine(rewriter_.Emit("count", {x}, std::move(attrs), place.location()), "sum", place);
    const pb::NodeInput one =
        rewriter_.Emit("constant", {}, Attrs().Value("value", Tensor::Scalar<float>(1).ToProto()),
                       place.location());
    return rewriter_.Emit("maximum", {sum, one}, {}, place.location());
  }

  pb::NodeInput Combine(const pb::NodeInput& x, std::string combine, const pb::NodeProto& place) {
    return rewriter_.Emit("accumulate", {x}, Attrs().String("combine", std::move(combine)),
                          place.location());
  }

  static absl::Status DependsOnCount(const std::string& what, const std::string& and_on) {
    return absl::InvalidArgumentError(absl::StrCat(
        what,
        " depends on a Count of a list's values, which is at least 1 also in a slice of "
        "micro_batches that has none of them, and on ",
        and_on, ": return the Count alone, and compute the rest of what was fetched", kRemedy));
  }

  int UnknownAxes(const pb::NodeInput& input) const {
    const Shape& shape = specs_[input.node()][input.output()].shape;
    return static_cast<int>(std::count(shape.begin(), shape.end(), kUnknownDim));
  }

  const pb::FunctionProto& old_;
  const FunctionSpecs& specs_;
  const std::vector<RecordDegree> degrees_;
  Rewriter rewriter_;
  std::map<std::pair<int, int>, pb::NodeInput> from_sums_;  // by node and output of the old graph
};

// The rows that the function pulls for these ids.
pb::NodeInput RowsOf(const pb::FunctionProto& function, const pb::NodeInput& ids) {
  pb::NodeInput rows;
  for (int i = 0; i < function.nodes_size(); ++i) {
    const pb::NodeProto& node = function.nodes(i);
    if (node.op() == "pull_rows" && node.inputs(0).node() == ids.node()) rows.set_node(i);
  }
  return rows;
}

}  // namespace

absl::StatusOr<pb::FunctionProto> AccumulateResults(const pb::FunctionProto& function,
                                                    absl::Span<const pb::NodeInput> losses) {
  if (function.micro_batches() <= 1) return function;
  MU_ASSIGN_OR_RETURN(const FunctionSpecs specs, InferSpecs(function));
  ResultsPass pass(function, specs);
  for (const pb::NodeInput& loss : losses) MU_RETURN_IF_ERROR(pass.CheckLoss(loss));
  return pass.Run();
}

pb::FunctionProto AccumulateGradients(const pb::FunctionProto& function) {
  if (function.micro_batches() <= 1) return function;
  const std::vector<StepPart> parts = StepPartsOf(function);
  Rewriter rewriter(function);
  for (int i = 0; i < function.nodes_size(); ++i) {
    const pb::NodeProto& node = function.nodes(i);
    const OpDef& def = DefOf(node);
    if (def.effect != OpEffect::kGradient ||
        parts[node.inputs(node.inputs_size() - 1).node()] != StepPart::kSlice) {
      rewriter.Copy(i);
    } else if (def.parameter == OpParameter::kVariable) {
      const pb::NodeInput mean = rewriter.Emit("accumulate", {rewriter.Map(node.inputs(0))},
                                               Attrs().String("combine", "mean"), node.location());
      rewriter.Emit(node.op(), {mean}, node.attrs(), node.location());
    } else {
      const pb::NodeInput rows =
          rewriter.Emit("accumulate_rows",
                        {rewriter.Map(node.inputs(0)), rewriter.Map(node.inputs(1)),
                         rewriter.Map(RowsOf(function, node.inputs(0)))},
                        {}, node.location());
      rewriter.Emit(node.op(), {rows, OutputOf(rows, 1)}, node.attrs(), node.location());
    }
  }
  return rewriter.Finish();
}

}  // namespace mu
