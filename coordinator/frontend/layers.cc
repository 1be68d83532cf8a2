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
  MU_ASSIGN_OR_RETURN(layer.kernel_,
                      factory.CreateVariable({.name = name + "/kernel",
                                              .shape = {inputs, outputs},
                                              .initializer = options.kernel.value_or(
                                                  Initializer(GlorotUniform(inputs, outputs))),
                                              .optimizer = options.optimizer}));
  if (!options.has_bias) return layer;
  MU_ASSIGN_OR_RETURN(layer.bias_, factory.CreateVariable({.name = name + "/bias",
                                                           .shape = {outputs},
                                                           .initializer = options.bias,
                                                           .optimizer = options.optimizer}));
  return layer;
}

Sym Dense::operator()(const Operand& x) const {
  const CallScope scope(x.place());
  const Sym value = x.Bind();
  const bool is_matrix = value.shape().rank() == 2;
  Sym result = is_matrix ? MatMul(value, kernel_) : BatchMatMul(value, kernel_);
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
