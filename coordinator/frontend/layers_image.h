// Layers on images [batch, height, width, channels]. Pooling has no variables: MaxPool2d and
// AvgPool2d in image_ops.h.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/frontend/image_ops.h"
#include "coordinator/frontend/layers.h"

namespace mu {

struct Conv2dOptions {
  int64_t height = 3;  // of the windows
  int64_t width = 3;
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  Padding padding = Padding::kSame;
  Activation activation = Activation::kNone;
  bool has_bias = true;                              // a BatchNorm after it makes a bias useless
  std::optional<Initializer> kernel = std::nullopt;  // none: GlorotUniform
  std::optional<Optimizer> optimizer = std::nullopt;
};

// x [batch, h, w, channels] -> activation(x * kernel + bias) [batch, oh, ow, filters]. Variables
// NAME/kernel [height, width, channels, filters] and NAME/bias [filters].
class Conv2d {
 public:
  static absl::StatusOr<Conv2d> Create(VariableFactory& factory, const std::string& name,
                                       int64_t channels, int64_t filters,
                                       const Conv2dOptions& options = {});
  Sym operator()(const Operand& x) const;

  const Variable& kernel() const { return kernel_; }
  const Variable& bias() const { return bias_; }  // empty without a bias

 private:
  Variable kernel_;
  Variable bias_;
  WindowOptions window_;
  Activation activation_ = Activation::kNone;
};

// [batch, ...] -> [batch, all the rest], of sizes that are known.
Sym Flatten(const Operand& x);

}  // namespace mu
