// Ops on images [batch, height, width, channels].
#pragma once

#include "coordinator/frontend/ops.h"

namespace mu {

// kValid: windows that lie inside of the image. kSame: ceil(size / stride) windows, the image is
// extended on both sides, with zeros for a convolution.
enum class Padding { kValid, kSame };

struct WindowOptions {
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  Padding padding = Padding::kValid;
};

// x [batch, h, w, c], filter [fh, fw, c, k] -> [batch, oh, ow, k]
Sym Convolve2d(const Operand& x, const Operand& filter, const WindowOptions& options = {});

struct PoolOptions {
  int64_t height = 2;
  int64_t width = 2;
  int64_t stride_height = 0;  // 0: height, so that windows do not overlap
  int64_t stride_width = 0;   // 0: width
  Padding padding = Padding::kValid;
};
Sym MaxPool2d(const Operand& x, const PoolOptions& options = {});
// The mean of what is inside of the image.
Sym AvgPool2d(const Operand& x, const PoolOptions& options = {});

// What gradients are made of.
Sym Convolve2dInputGrad(const Operand& dy, const Operand& x, const Operand& filter,
                        const WindowOptions& options);
Sym Convolve2dFilterGrad(const Operand& dy, const Operand& x, const Operand& filter,
                         const WindowOptions& options);
Sym MaxPool2dGrad(const Operand& dy, const Operand& x, const PoolOptions& options);
Sym AvgPool2dGrad(const Operand& dy, const Operand& x, const PoolOptions& options);

}  // namespace mu
