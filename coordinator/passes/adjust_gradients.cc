// Penalties, clipping and weight decay, on the lowered graph: only there is the gradient of a table
// one value, the sum over all its lookups.
#include <string>
#include <utility>
#include <vector>

#include "common/graph/op_table.h"
#include "common/tensor/tensor.h"
#include "coordinator/frontend/trace_graph.h"
#include "coordinator/passes/passes.h"
#include "coordinator/passes/rewriter.h"

namespace mu {
namespace {

class Adjustment {
 public:
  Adjustment(const pb::FunctionProto& old, const GradientOptions& options)
      : old_(old), options_(options), rewriter_(old) {}

  pb::FunctionProto Run() {
    for (int i = 0; i < old_.nodes_size(); ++i) {
      if (DefOf(old_.nodes(i)).effect == OpEffect::kGradient) {
        updates_.push_back({&old_.nodes(i), {}});
      } else {
        rewriter_.Copy(i);
      }
    }
    for (Update& update : updates_) {
      const pb::NodeProto& node = *update.node;
      update.gradient = rewriter_.Map(node.inputs(node.inputs_size() - 1));
      AddPenalties(&update);
      ClipAlone(&update);
    }
    if (options_.clip_by_global_norm > 0 && !updates_.empty()) ClipTogether();
    for (Update& update : updates_) {
      if (options_.weight_decay > 0) AddScaled(&update, Weights(update), options_.weight_decay);
      Finish(update);
    }
    return rewriter_.Finish();
  }

 private:
  struct Update {
    const pb::NodeProto* node;
    pb::NodeInput gradient;  // of the new graph
  };

  pb::NodeInput Emit(const Update& update, const std::string& op,
                     const std::vector<pb::NodeInput>& inputs, AttrMap attrs = {}) {
    return rewriter_.Emit(op, inputs, std::move(attrs), update.node->location());
  }

  pb::NodeInput Number(const Update& update, float value) {
    return rewriter_.Emit("constant", {},
                          Attrs().Value("value", Tensor::Scalar<float>(value).ToProto()),
                          update.node->location());
  }

  // What the update changes, as it was at the beginning of the step. ShareCommonNodes makes one of
  // this and of what the step reads anyhow.
  pb::NodeInput Weights(const Update& update) {
    const pb::NodeProto& node = *update.node;
    if (DefOf(node).parameter == OpParameter::kVariable) {
      return rewriter_.Emit("variable_read", {}, node.attrs(), node.location());
    }
    // Of accumulated gradients the rows are accumulated with them.
    const pb::NodeInput& ids = node.inputs(0);
    if (DefOf(old_.nodes(ids.node())).source == OpSource::kSlices)
      return rewriter_.Map(OutputOf(ids, 2));
    return rewriter_.Emit("pull_rows", {rewriter_.Map(ids)}, node.attrs(), node.location());
  }

  void AddScaled(Update* update, const pb::NodeInput& value, float factor) {
    const pb::NodeInput scaled = Emit(*update, "multiply", {value, Number(*update, factor)});
    update->gradient = Emit(*update, "add", {update->gradient, scaled});
  }

  void AddPenalties(Update* update) {
    if (options_.l2 > 0) AddScaled(update, Weights(*update), options_.l2);
    if (options_.l1 > 0) AddScaled(update, Emit(*update, "sign", {Weights(*update)}), options_.l1);
  }

  void ClipAlone(Update* update) {
    if (const float bound = options_.clip_by_value; bound > 0) {
      const pb::NodeInput above =
          Emit(*update, "maximum", {update->gradient, Number(*update, -bound)});
      update->gradient = Emit(*update, "minimum", {above, Number(*update, bound)});
    }
    if (options_.clip_by_norm > 0) {
      const pb::NodeInput scale = Scale(*update, {update->gradient}, options_.clip_by_norm);
      update->gradient = Emit(*update, "multiply", {update->gradient, scale});
    }
  }

  void ClipTogether() {
    std::vector<pb::NodeInput> gradients;
    for (const Update& update : updates_) gradients.push_back(update.gradient);
    const pb::NodeInput scale = Scale(updates_[0], gradients, options_.clip_by_global_norm);
    for (Update& update : updates_) {
      update.gradient = Emit(update, "multiply", {update.gradient, scale});
    }
  }

  // min(1, bound / norm). A norm of 0 makes that 1; one that is NaN stays NaN, for the step's
  // check. So does a scale of 0, of a norm beyond float32 or nearly so: a gradient must not vanish
  // because it is large.
  pb::NodeInput Scale(const Update& update, const std::vector<pb::NodeInput>& gradients,
                      float bound) {
    const pb::NodeInput norm =
        Emit(update, "sum_of_squares", gradients, Attrs().Bool("root", true));
    const pb::NodeInput ratio = Emit(update, "divide", {Number(update, bound), norm});
    const pb::NodeInput scale = Emit(update, "minimum", {ratio, Number(update, 1)});
    const pb::NodeInput is_positive = Emit(update, "greater", {scale, Number(update, 0)});
    const pb::NodeInput one_or_zero =
        Emit(update, "cast", {is_positive}, Attrs().Type("dtype", kFloat32));
    return Emit(update, "divide", {scale, one_or_zero});
  }

  void Finish(const Update& update) {
    const pb::NodeProto& node = *update.node;
    std::vector<pb::NodeInput> inputs;
    for (int i = 0; i + 1 < node.inputs_size(); ++i)
      inputs.push_back(rewriter_.Map(node.inputs(i)));
    inputs.push_back(update.gradient);
    rewriter_.Emit(node.op(), inputs, node.attrs(), node.location());
  }

  const pb::FunctionProto& old_;
  const GradientOptions options_;
  Rewriter rewriter_;
  std::vector<Update> updates_;
};

}  // namespace

pb::FunctionProto AdjustGradients(const pb::FunctionProto& function,
                                  const GradientOptions& options) {
  return options.any() ? Adjustment(function, options).Run() : function;
}

}  // namespace mu
