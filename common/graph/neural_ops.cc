#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

absl::Status CheckRows(const TensorSpec& spec, absl::string_view what) {
  MU_RETURN_IF_ERROR(CheckFloat(spec, what));
  if (spec.shape.rank() >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " must have at least 1 axis, got ", spec.ToString()));
}

Shape WithoutLastAxis(const Shape& shape) {
  Shape shorter;
  for (int i = 0; i + 1 < shape.rank(); ++i) shorter.Append(shape[i]);
  return shorter;
}

SpecsOr InferSoftmax(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckRows(in[0], "x"));
  return std::vector<TensorSpec>{in[0]};
}

SpecsOr InferLogSumExp(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckRows(in[0], "x"));
  return std::vector<TensorSpec>{{kFloat32, WithoutLastAxis(in[0].shape)}};
}

SpecsOr InferDenseCrossEntropy(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckRows(in[0], "logits"));
  MU_RETURN_IF_ERROR(CheckFloat(in[1], "labels"));
  MU_ASSIGN_OR_RETURN(Shape shape, MergeShapes(in[0].shape, in[1].shape));
  return std::vector<TensorSpec>{{kFloat32, WithoutLastAxis(shape)}};
}

SpecsOr InferSparseCrossEntropy(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckRows(in[0], "logits"));
  MU_RETURN_IF_ERROR(CheckIndices(in[1], "labels"));
  const absl::StatusOr<Shape> shape = MergeShapes(WithoutLastAxis(in[0].shape), in[1].shape);
  if (!shape.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("labels ", in[1].ToString(),
                                                   " must have the shape of logits ",
                                                   in[0].ToString(), " without its last axis"));
  }
  return std::vector<TensorSpec>{{kFloat32, *shape}};
}

SpecsOr InferSparseCrossEntropyGrad(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "dy"));
  MU_ASSIGN_OR_RETURN(const std::vector<TensorSpec> loss,
                      InferSparseCrossEntropy(in.subspan(1), attrs));
  MU_RETURN_IF_ERROR(MergeShapes(in[0].shape, loss[0].shape).status());
  return std::vector<TensorSpec>{in[1]};
}

// gamma or beta of a normalisation of x.
absl::Status CheckScale(const TensorSpec& scale, const TensorSpec& x, absl::string_view what) {
  MU_RETURN_IF_ERROR(CheckFloat(scale, what));
  MU_RETURN_IF_ERROR(CheckRank(scale, 1, what));
  if (MergeDims(scale.shape[0], x.shape[x.shape.rank() - 1]).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " ", scale.ToString(), " must have the size of the last axis of x ", x.ToString()));
}

absl::Status CheckNorm(const TensorSpec& x, Inputs scales, const AttrReader& attrs) {
  const float epsilon = attrs.Float("epsilon");
  if (!(epsilon >= 0) || std::isinf(epsilon)) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute \"epsilon\" must be finite and not below 0, got ", epsilon));
  }
  MU_RETURN_IF_ERROR(CheckRows(x, "x"));
  constexpr absl::string_view kNames[] = {"gamma", "beta"};
  for (size_t i = 0; i < scales.size(); ++i) {
    MU_RETURN_IF_ERROR(CheckScale(scales[i], x, kNames[i]));
  }
  return absl::OkStatus();
}

SpecsOr InferNorm(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckNorm(in[0], in.subspan(1), attrs));
  return std::vector<TensorSpec>{in[0]};
}

SpecsOr InferNormGrad(Inputs in, const AttrReader& attrs, int outputs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "dy"));
  MU_RETURN_IF_ERROR(CheckNorm(in[1], in.subspan(2), attrs));
  MU_RETURN_IF_ERROR(MergeShapes(in[0].shape, in[1].shape).status());
  std::vector<TensorSpec> specs(outputs, in[2]);
  specs[0] = in[1];
  return specs;
}

// Number of pairs of n vectors.
absl::StatusOr<int64_t> PairsOf(const TensorSpec& x) {
  MU_RETURN_IF_ERROR(CheckFloat(x, "x"));
  MU_RETURN_IF_ERROR(CheckRank(x, 3, "x"));
  constexpr int64_t kMostVectors = 1 << 16;
  const int64_t n = x.shape[1];
  if (n > kMostVectors) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes at most ", kMostVectors, " vectors of a record, got ", x.ToString()));
  }
  return n == kUnknownDim ? kUnknownDim : n * (n - 1) / 2;
}

SpecsOr InferInteractions(Inputs in, const AttrReader&) {
  MU_ASSIGN_OR_RETURN(const int64_t pairs, PairsOf(in[0]));
  return std::vector<TensorSpec>{{kFloat32, Shape({in[0].shape[0], pairs})}};
}

SpecsOr InferInteractionsGrad(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "dy"));
  MU_ASSIGN_OR_RETURN(const int64_t pairs, PairsOf(in[1]));
  MU_RETURN_IF_ERROR(MergeShapes(in[0].shape, Shape({in[1].shape[0], pairs})).status());
  return std::vector<TensorSpec>{in[1]};
}

OpDef NormGrad(std::string name, int outputs, float epsilon) {
  OpDef def = MakeOp(
      std::move(name), 3, 3,
      [outputs](Inputs in, const AttrReader& attrs) { return InferNormGrad(in, attrs, outputs); },
      {OptionalFloat("epsilon", epsilon)});
  def.outputs = outputs;
  return def;
}

void RegisterSoftmax(OpTable& table) {
  table.Add(MakeOp("softmax", 1, 1, InferSoftmax), "(x: float32[..., n]) -> float32, x's shape",
            "exp(x) divided by its sum over the last axis.");
  table.Add(MakeOp("log_softmax", 1, 1, InferSoftmax), "(x: float32[..., n]) -> float32, x's shape",
            "The logarithm of softmax(x).");
  table.Add(MakeOp("logsumexp", 1, 1, InferLogSumExp), "(x: float32[..., n]) -> float32[...]",
            "The logarithm of the sum of exp(x) over the last axis.");
  table.Add(MakeOp("softmax_cross_entropy", 2, 2, InferDenseCrossEntropy),
            "(logits, labels: float32[..., n], one shape) -> float32[...]",
            "Minus the sum of labels * log_softmax(logits) over the last axis. A class whose label "
            "is 0 counts for nothing, whatever its logit.");
  table.Add(MakeOp("sparse_softmax_cross_entropy", 2, 2, InferSparseCrossEntropy),
            "(logits: float32[..., n], labels: int32 or int64[...]) -> float32[...]",
            "Minus log_softmax(logits) at the class that the label numbers. OUT_OF_RANGE for a "
            "label outside [0, n).");
  table.Add(MakeOp("sparse_softmax_cross_entropy_grad", 3, 3, InferSparseCrossEntropyGrad),
            "(dy: float32[...], logits: float32[..., n], labels: int32 or int64[...]) -> float32, "
            "logits' shape",
            "dy * (softmax(logits) - one_hot(labels)): the gradient of the logits.");
}

void RegisterNorms(OpTable& table) {
  table.Add(MakeOp("layer_norm", 3, 3, InferNorm, {OptionalFloat("epsilon", 1e-5f)}),
            "(x: float32[..., n], gamma, beta: float32[n]) -> float32, x's shape",
            "(x - mean) / sqrt(variance + epsilon) * gamma + beta, with the mean and the (biased) "
            "variance of the last axis.");
  table.Add(NormGrad("layer_norm_grad", 3, 1e-5f),
            "(dy, x: float32[..., n], gamma: float32[n]) -> (float32, x's shape; float32[n]; "
            "float32[n])",
            "The gradients of layer_norm's x, gamma and beta.");
  table.Add(MakeOp("rms_norm", 2, 2, InferNorm, {OptionalFloat("epsilon", 1e-6f)}),
            "(x: float32[..., n], gamma: float32[n]) -> float32, x's shape",
            "x / sqrt(mean of x * x + epsilon) * gamma, with the mean of the last axis.");
  table.Add(NormGrad("rms_norm_grad", 2, 1e-6f),
            "(dy, x: float32[..., n], gamma: float32[n]) -> (float32, x's shape; float32[n])",
            "The gradients of rms_norm's x and gamma.");
}

}  // namespace

void RegisterNeuralOps(OpTable& table) {
  table.BeginSection("Softmax, normalisation and interactions",
                     "Sizes that meet must be equal where both are known.");
  RegisterSoftmax(table);
  RegisterNorms(table);
  table.Add(MakeOp("pairwise_interactions", 1, 1, InferInteractions),
            "(x: float32[batch, n, d]) -> float32[batch, n * (n - 1) / 2]",
            "The products of all pairs of a record's vectors, each pair once: x[i] * x[j] with "
            "j < i, in the order (1, 0), (2, 0), (2, 1), (3, 0), ...");
  table.Add(MakeOp("pairwise_interactions_grad", 2, 2, InferInteractionsGrad),
            "(dy: float32[batch, n * (n - 1) / 2], x: float32[batch, n, d]) -> float32, x's shape",
            "The gradient of pairwise_interactions' x: for each vector the sum of the others, each "
            "times dy of their pair.");
}

}  // namespace mu
