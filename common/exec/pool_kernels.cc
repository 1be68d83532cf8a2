// Pooling of images [batch, height, width, channels].
#include <algorithm>
#include <cstring>

#include "common/exec/kernel_table.h"
#include "common/exec/simd.h"
#include "common/exec/window.h"

namespace mu {
namespace {

class PoolKernel : public Kernel {
 public:
  explicit PoolKernel(const NodeSpec& spec)
      : height_(spec.attrs.Ints("size")[0]),
        width_(spec.attrs.Ints("size")[1]),
        stride_y_(spec.attrs.Ints("strides")[0]),
        stride_x_(spec.attrs.Ints("strides")[1]),
        same_(spec.attrs.String("padding") == "same") {}

 protected:
  Windows Describe(const Shape& x) const {
    return MakeWindows(x, height_, width_, stride_y_, stride_x_, same_);
  }
  static Shape ResultOf(const Windows& w) {
    return Shape({w.batch, w.y.count, w.x.count, w.channels});
  }
  // Of a gradient: (dy, x).
  absl::StatusOr<Windows> DescribeGradient(KernelContext& context) const {
    const Windows w = Describe(context.input(1).shape);
    if (context.input(0).shape == ResultOf(w)) return w;
    return absl::InvalidArgumentError(absl::StrCat("dy of shape ",
                                                   context.input(0).shape.ToString(),
                                                   " but the pool makes ", ResultOf(w).ToString()));
  }

 private:
  const int64_t height_, width_, stride_y_, stride_x_;
  const bool same_;
};

// Calls window(number, image, window_y, window_x) for all of them, in order; for none if there is
// nothing in them.
template <typename F>
void ForEachWindow(const Windows& w, F&& window) {
  if (w.channels == 0) return;
  int64_t number = 0;
  for (int64_t image = 0; image < w.batch; ++image) {
    for (int64_t y = 0; y < w.y.count; ++y) {
      for (int64_t x = 0; x < w.x.count; ++x) window(number++, image, y, x);
    }
  }
}

// Calls pixel(offset) for the pixels of a window that are inside of its image, in order.
template <typename F>
void ForEachPixel(const Windows& w, int64_t image, int64_t window_y, int64_t window_x, F&& pixel) {
  for (int64_t y = w.y.Begin(window_y); y < w.y.End(window_y); ++y) {
    for (int64_t x = w.x.Begin(window_x); x < w.x.End(window_x); ++x) {
      pixel(((image * w.y.input + y) * w.x.input + x) * w.channels);
    }
  }
}

int64_t PixelsOf(const Windows& w, int64_t window_y, int64_t window_x) {
  return (w.y.End(window_y) - w.y.Begin(window_y)) * (w.x.End(window_x) - w.x.Begin(window_x));
}

// The largest of a window's pixels, channel by channel; NaN if one is NaN.
void LargestOf(const Windows& w, const float* in, int64_t image, int64_t window_y, int64_t window_x,
               float* __restrict largest) {
  bool first = true;
  ForEachPixel(w, image, window_y, window_x, [&](int64_t offset) {
    const float* const from = in + offset;
    if (first) {
      std::memcpy(largest, from, w.channels * sizeof(float));
    } else {
      for (int64_t c = 0; c < w.channels; ++c) {
        largest[c] = from[c] > largest[c] || from[c] != from[c] ? from[c] : largest[c];
      }
    }
    first = false;
  });
}

class MaxPoolKernel : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;
  absl::Status Run(KernelContext& context) const override {
    const Windows w = Describe(context.input(0).shape);
    const float* const in = context.in<float>(0);
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, ResultOf(w)));
    ForEachWindow(w, [&](int64_t number, int64_t image, int64_t window_y, int64_t window_x) {
      LargestOf(w, in, image, window_y, window_x, out + number * w.channels);
    });
    return absl::OkStatus();
  }
};

class MaxPoolGradKernel : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;
  absl::Status Run(KernelContext& context) const override {
    MU_ASSIGN_OR_RETURN(const Windows w, DescribeGradient(context));
    const float* const dy = context.in<float>(0);
    const float* const in = context.in<float>(1);
    const Shape& like = context.input(1).shape;
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, like));
    if (like.elements() == 0) return absl::OkStatus();
    std::fill(out, out + like.elements(), 0.0f);
    auto& scratch = context.scratch().buffers;
    float* const largest = static_cast<float*>(scratch[0].Reserve(w.channels * sizeof(float)));
    float* const left = static_cast<float*>(scratch[1].Reserve(w.channels * sizeof(float)));
    ForEachWindow(w, [&](int64_t number, int64_t image, int64_t window_y, int64_t window_x) {
      LargestOf(w, in, image, window_y, window_x, largest);
      std::memcpy(left, dy + number * w.channels, w.channels * sizeof(float));
      ForEachPixel(w, image, window_y, window_x, [&](int64_t offset) {
        Give(w.channels, in + offset, largest, left, out + offset);
      });
    });
    return absl::OkStatus();
  }

 private:
  // What is left of dy goes to the first pixel that is the largest.
  static void Give(int64_t channels, const float* __restrict x, const float* __restrict largest,
                   float* __restrict left, float* __restrict to) {
    for (int64_t c = 0; c < channels; ++c) {
      const float given = x[c] == largest[c] ? left[c] : 0.0f;
      to[c] += given;
      left[c] -= given;
    }
  }
};

class AvgPoolKernel : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;
  absl::Status Run(KernelContext& context) const override {
    const Windows w = Describe(context.input(0).shape);
    const float* const in = context.in<float>(0);
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, ResultOf(w)));
    ForEachWindow(w, [&](int64_t number, int64_t image, int64_t window_y, int64_t window_x) {
      float* const to = out + number * w.channels;
      std::fill(to, to + w.channels, 0.0f);
      ForEachPixel(w, image, window_y, window_x,
                   [&](int64_t offset) { AddTo(to, in + offset, w.channels); });
      const float pixels = static_cast<float>(PixelsOf(w, window_y, window_x));
      for (int64_t c = 0; c < w.channels; ++c) to[c] /= pixels;
    });
    return absl::OkStatus();
  }
};

class AvgPoolGradKernel : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;
  absl::Status Run(KernelContext& context) const override {
    MU_ASSIGN_OR_RETURN(const Windows w, DescribeGradient(context));
    const float* const dy = context.in<float>(0);
    const Shape& like = context.input(1).shape;
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, like));
    std::fill(out, out + like.elements(), 0.0f);
    ForEachWindow(w, [&](int64_t number, int64_t image, int64_t window_y, int64_t window_x) {
      const float share = 1.0f / static_cast<float>(PixelsOf(w, window_y, window_x));
      ForEachPixel(w, image, window_y, window_x, [&](int64_t offset) {
        AddScaled(out + offset, share, dy + number * w.channels, w.channels);
      });
    });
    return absl::OkStatus();
  }
  bool ReadsElements(int input) const override { return input != 1; }
};

template <typename K>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return KernelPtr(new K(spec));
}

}  // namespace

void RegisterPoolKernels(KernelTable& table) {
  table.Add("max_pool2d", Make<MaxPoolKernel>);
  table.Add("max_pool2d_grad", Make<MaxPoolGradKernel>);
  table.Add("avg_pool2d", Make<AvgPoolKernel>);
  table.Add("avg_pool2d_grad", Make<AvgPoolGradKernel>);
}

}  // namespace mu
