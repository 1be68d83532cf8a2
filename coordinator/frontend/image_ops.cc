#include "coordinator/frontend/image_ops.h"

#include "coordinator/frontend/op_support.h"

namespace mu {
namespace {

std::string NameOf(Padding padding) { return padding == Padding::kSame ? "same" : "valid"; }

AttrMap AttrsOf(const WindowOptions& options) {
  return Attrs()
      .Ints("strides", {options.stride_height, options.stride_width})
      .String("padding", NameOf(options.padding));
}

AttrMap AttrsOf(const PoolOptions& options) {
  const int64_t stride_height = options.stride_height == 0 ? options.height : options.stride_height;
  const int64_t stride_width = options.stride_width == 0 ? options.width : options.stride_width;
  return Attrs()
      .Ints("size", {options.height, options.width})
      .Ints("strides", {stride_height, stride_width})
      .String("padding", NameOf(options.padding));
}

}  // namespace

Sym Convolve2d(const Operand& x, const Operand& filter, const WindowOptions& options) {
  return AddOp("conv2d", {x.Bind(), filter.Bind()}, AttrsOf(options), x.place());
}

Sym MaxPool2d(const Operand& x, const PoolOptions& options) {
  return AddOp("max_pool2d", {x.Bind()}, AttrsOf(options), x.place());
}

Sym AvgPool2d(const Operand& x, const PoolOptions& options) {
  return AddOp("avg_pool2d", {x.Bind()}, AttrsOf(options), x.place());
}

Sym Convolve2dInputGrad(const Operand& dy, const Operand& x, const Operand& filter,
                        const WindowOptions& options) {
  return AddOp("conv2d_input_grad", {dy.Bind(), x.Bind(), filter.Bind()}, AttrsOf(options),
               dy.place());
}

Sym Convolve2dFilterGrad(const Operand& dy, const Operand& x, const Operand& filter,
                         const WindowOptions& options) {
  return AddOp("conv2d_filter_grad", {dy.Bind(), x.Bind(), filter.Bind()}, AttrsOf(options),
               dy.place());
}

Sym MaxPool2dGrad(const Operand& dy, const Operand& x, const PoolOptions& options) {
  return AddOp("max_pool2d_grad", {dy.Bind(), x.Bind()}, AttrsOf(options), dy.place());
}

Sym AvgPool2dGrad(const Operand& dy, const Operand& x, const PoolOptions& options) {
  return AddOp("avg_pool2d_grad", {dy.Bind(), x.Bind()}, AttrsOf(options), dy.place());
}

}  // namespace mu
