#include "coordinator/frontend/layers_image.h"

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/op_support.h"

namespace mu {

absl::StatusOr<Conv2d> Conv2d::Create(VariableFactory& factory, const std::string& name,
                                      int64_t channels, int64_t filters,
                                      const Conv2dOptions& options) {
  for (const int64_t number : {channels, filters, options.height, options.width,
                               options.stride_height, options.stride_width}) {
    if (number <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer \"", name,
                       "\": channels, filters, windows and strides must be above 0, got ", number));
    }
  }
  Conv2d layer;
  layer.activation_ = options.activation;
  layer.window_ = {options.stride_height, options.stride_width, options.padding};
  const int64_t window = options.height * options.width;
  MU_ASSIGN_OR_RETURN(
      layer.kernel_,
      factory.CreateVariable({.name = name + "/kernel",
                              .shape = {options.height, options.width, channels, filters},
                              .initializer = options.kernel.value_or(
                                  Initializer(GlorotUniform(window * channels, window * filters))),
                              .optimizer = options.optimizer}));
  if (!options.has_bias) return layer;
  MU_ASSIGN_OR_RETURN(layer.bias_, factory.CreateVariable({.name = name + "/bias",
                                                           .shape = {filters},
                                                           .optimizer = options.optimizer}));
  return layer;
}

Sym Conv2d::operator()(const Operand& x) const {
  const CallScope scope(x.place());
  Sym result = Convolve2d(x, kernel_, window_);
  if (bias_.valid()) result = result + bias_;
  return Activate(result, activation_);
}

Sym Flatten(const Operand& x) {
  const Sym value = x.Bind();
  int64_t size = 1;
  for (int i = 1; i < value.shape().rank(); ++i) {
    size = size < 0 || value.shape()[i] < 0 ? kUnknownDim : size * value.shape()[i];
  }
  return Reshape(Operand(value, x.place().file, x.place().line), {-1, size});
}

}  // namespace mu
