#include "coordinator/frontend/layers.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/neural_ops.h"
#include "coordinator/frontend/op_support.h"

namespace mu {

Sym Activate(const Operand& x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return x.Bind();
    case Activation::kRelu:
      return Relu(x);
    case Activation::kSigmoid:
      return Sigmoid(x);
    case Activation::kTanh:
      return Tanh(x);
    case Activation::kGelu:
      return Gelu(x);
    case Activation::kSilu:
      return Silu(x);
  }
  return x.Bind();
}

absl::StatusOr<Dense> Dense::Create(VariableFactory& factory, const std::string& name,
                                    int64_t inputs, int64_t outputs, const DenseOptions& options) {
  if (inputs <= 0 || outputs <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer \"", name, "\" cannot lead from ", inputs, " values to ", outputs));
  }
  Dense layer;
  layer.activation_ = options.activation;
  layer.product_ = options.product;
  const bool by_output = options.product.has_value();
  const Shape shape = by_output ? Shape({outputs, inputs}) : Shape({inputs, outputs});
  // A square shape does not say which of the two it is, so the name does: no checkpoint of the one
  // may fit the other.
  const std::string kernel_name = name + (by_output ? "/kernel_by_output" : "/kernel");
  MU_ASSIGN_OR_RETURN(layer.kernel_,
                      factory.CreateVariable({.name = kernel_name,
                                              .shape = shape,
                                              .initializer = options.kernel.value_or(
                                                  Initializer(GlorotUniform(inputs, outputs))),
                                              .optimizer = options.optimizer,
                                              .partitioner = options.partitioner}));
  if (!options.has_bias) return layer;
  MU_ASSIGN_OR_RETURN(layer.bias_, factory.CreateVariable({.name = name + "/bias",
                                                           .shape = {outputs},
                                                           .initializer = options.bias,
                                                           .optimizer = options.optimizer}));
  return layer;
}

Sym Dense::ShardedProduct(const Sym& x, SourcePlace place) const {
  const int rank = x.shape().rank();
  if (!x.valid() || rank <= 2) return ShardedMatMul(At(x, place), kernel_, {.place = *product_});
  // Its rows are a matrix, whose number decides where the product is computed.
  Shape results(x.shape().dims().subspan(0, static_cast<size_t>(rank - 1)));
  int64_t rows = 1, unknown = 0;
  for (const int64_t size : results) {
    if (size < 0) ++unknown;
    rows *= size < 0 ? x.graph()->batch_size() : size;
  }
  if (unknown > 1) {
    return x.graph()->Fail("sharded_matmul",
                           absl::InvalidArgumentError(absl::StrCat(
                               "takes [..., inputs] with one size at most that is not known, got ",
                               x.spec().ToString(), "; give it [rows, inputs]")),
                           place);
  }
  results.Append(kernel_.shape()[0]);
  const Sym matrix = Reshape(x, {-1, x.shape()[rank - 1]});
  return Reshape(ShardedMatMul(At(matrix, place), kernel_, {.place = *product_, .batch = rows}),
                 results);
}

Sym Dense::operator()(const Operand& x) const {
  const CallScope scope(x.place());
  const Sym value = x.Bind();
  const bool is_matrix = value.shape().rank() == 2;
  Sym result = product_.has_value() ? ShardedProduct(value, x.place())
               : is_matrix          ? MatMul(value, kernel_)
                                    : BatchMatMul(value, kernel_);
  if (bias_.valid()) result = result + bias_;
  return Activate(result, activation_);
}

absl::StatusOr<Mlp> Mlp::Create(VariableFactory& factory, const std::string& name, int64_t inputs,
                                const std::vector<int64_t>& widths, const MlpOptions& options) {
  if (widths.empty())
    return absl::InvalidArgumentError(absl::StrCat("MLP \"", name, "\" has no layers"));
  Mlp mlp;
  for (size_t i = 0; i < widths.size(); ++i) {
    DenseOptions dense;
    dense.activation = i + 1 < widths.size() ? options.activation : options.last_activation;
    dense.optimizer = options.optimizer;
    dense.partitioner = options.partitioner;
    if (i + 1 == widths.size()) dense.product = options.last_product;
    if (options.normal_initializers && inputs > 0 && widths[i] > 0) {
      const double outputs = static_cast<double>(widths[i]);
      dense.kernel = Normal{
          0.0f, static_cast<float>(std::sqrt(2.0 / (static_cast<double>(inputs) + outputs)))};
      dense.bias = Normal{0.0f, static_cast<float>(std::sqrt(1.0 / outputs))};
    }
    MU_ASSIGN_OR_RETURN(
        Dense layer, Dense::Create(factory, absl::StrCat(name, "_", i), inputs, widths[i], dense));
    mlp.layers_.push_back(std::move(layer));
    inputs = widths[i];
  }
  return mlp;
}

Sym Mlp::operator()(const Operand& x) const {
  Sym value = x.Bind();
  for (const Dense& layer : layers_) value = layer(Operand(value, x.place().file, x.place().line));
  return value;
}

}  // namespace mu
