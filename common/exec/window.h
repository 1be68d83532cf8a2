// Windows that slide over images [batch, height, width, channels]: what convolution and pooling
// have in common.
#pragma once

#include <algorithm>

#include "common/graph/window_rules.h"
#include "common/tensor/shape.h"

namespace mu {

// One axis of the sliding: `count` windows of `size`, the first begins at -`before`.
struct WindowAxis {
  int64_t input = 0;
  int64_t size = 0;
  int64_t stride = 1;
  int64_t before = 0;
  int64_t count = 0;

  int64_t Start(int64_t window) const { return window * stride - before; }
  // The part of window number `window` that is inside of the image, as [begin, end) of the image.
  int64_t Begin(int64_t window) const { return std::max<int64_t>(Start(window), 0); }
  int64_t End(int64_t window) const { return std::min(Start(window) + size, input); }
  // How far the last window reaches beyond the image.
  int64_t After() const { return std::max<int64_t>(Start(count - 1) + size - input, 0); }

  friend bool operator==(const WindowAxis&, const WindowAxis&) = default;
};

struct Windows {
  int64_t batch = 0;
  int64_t channels = 0;
  WindowAxis y, x;

  int64_t Count() const { return y.count * x.count; }  // of one image
  int64_t ImageSize() const { return y.input * x.input * channels; }

  friend bool operator==(const Windows&, const Windows&) = default;
};

inline WindowAxis MakeWindowAxis(int64_t input, int64_t size, int64_t stride, bool same) {
  WindowAxis axis{input, size, stride, 0, WindowCount(input, size, stride, same)};
  if (same) {
    // As TensorFlow: an odd one of what is added goes to the end.
    const int64_t added = std::max<int64_t>((axis.count - 1) * stride + size - input, 0);
    axis.before = added / 2;
  }
  return axis;
}

inline Windows MakeWindows(const Shape& images, int64_t height, int64_t width, int64_t stride_y,
                           int64_t stride_x, bool same) {
  return {images[0], images[3], MakeWindowAxis(images[1], height, stride_y, same),
          MakeWindowAxis(images[2], width, stride_x, same)};
}

}  // namespace mu
