// Layers: variables and the ops that use them. Created once, outside of functions; called inside
// any number of them. Other layers are in layers_*.h beside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/frontend/variable_factory.h"
#include "coordinator/frontend/variable_ops.h"

namespace mu {

enum class Activation { kNone, kRelu, kSigmoid, kTanh, kGelu, kSilu };

Sym Activate(const Operand& x, Activation activation);

struct DenseOptions {
  Activation activation = Activation::kNone;
  std::optional<Initializer> kernel = std::nullopt;  // none: GlorotUniform
  Initializer bias = Zeros{};
  bool has_bias = true;
  std::optional<Optimizer> optimizer = std::nullopt;
  std::optional<Partitioner> partitioner = std::nullopt;  // of the kernel
  // For many outputs, as of a softmax: where the product with the kernel is computed, as
  // ShardedMatMul does it. The kernel is then NAME/kernel_by_output [outputs, inputs], so that
  // servers have outputs of their own; checkpoints without `product` do not fit.
  std::optional<ProductPlace> product = std::nullopt;  // none: the kernel is read
};

// x [..., inputs] -> activation(x kernel + bias) [..., outputs]. Variables NAME/kernel [inputs,
// outputs], with `product` NAME/kernel_by_output [outputs, inputs], and NAME/bias [outputs].
class Dense {
 public:
  static absl::StatusOr<Dense> Create(VariableFactory& factory, const std::string& name,
                                      int64_t inputs, int64_t outputs,
                                      const DenseOptions& options = {});
  Sym operator()(const Operand& x) const;

  const Variable& kernel() const { return kernel_; }
  const Variable& bias() const { return bias_; }  // empty without a bias

 private:
  // x times the transposed kernel [outputs, inputs].
  Sym ShardedProduct(const Sym& x, SourcePlace place) const;

  Variable kernel_;
  Variable bias_;
  Activation activation_ = Activation::kNone;
  std::optional<ProductPlace> product_;
};

struct MlpOptions {
  Activation activation = Activation::kRelu;       // between layers
  Activation last_activation = Activation::kNone;  // after the last
  // As the DLRM reference: kernels Normal(0, sqrt(2 / (inputs + outputs))), biases Normal(0, sqrt(1
  // / outputs)).
  bool normal_initializers = false;
  std::optional<Optimizer> optimizer = std::nullopt;
  std::optional<Partitioner> partitioner = std::nullopt;    // of all kernels
  std::optional<ProductPlace> last_product = std::nullopt;  // DenseOptions::product of the last
};

// Dense layers NAME_0, NAME_1, ... of the given widths.
class Mlp {
 public:
  static absl::StatusOr<Mlp> Create(VariableFactory& factory, const std::string& name,
                                    int64_t inputs, const std::vector<int64_t>& widths,
                                    const MlpOptions& options = {});
  Sym operator()(const Operand& x) const;

  const std::vector<Dense>& layers() const { return layers_; }

 private:
  std::vector<Dense> layers_;
};

}  // namespace mu
