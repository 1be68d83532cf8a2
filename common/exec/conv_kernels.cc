// Convolutions of images [batch, height, width, channels] as matrix products: each window becomes a
// row of a matrix ("im2col"), block by block, so that a block stays in the cache.
//
// Blocks depend on sizes only, and so does the order of additions.
#include <algorithm>
#include <cstring>

#include "common/exec/gemm.h"
#include "common/exec/kernel_table.h"
#include "common/exec/simd.h"
#include "common/exec/window.h"

namespace mu {
namespace {

constexpr int64_t kBlockFloats = 128 * 1024;

struct Convolution {
  Windows windows;
  int64_t depth = 0;    // elements of a window
  int64_t filters = 0;  // channels of the result

  int64_t Rows() const { return windows.batch * windows.Count(); }
  int64_t BlockRows() const { return std::clamp<int64_t>(kBlockFloats / depth, 1, Rows()); }
  Shape Result() const { return Shape({windows.batch, windows.y.count, windows.x.count, filters}); }
  bool IsEmpty() const { return Rows() == 0 || depth == 0 || filters == 0; }
  // Whether the matrix of windows is the images themselves.
  bool IsProduct() const {
    const WindowAxis &y = windows.y, &x = windows.x;
    return y.size == 1 && x.size == 1 && y.stride == 1 && x.stride == 1;
  }
};

// Calls piece(offset in the row, offset in the image, elements) for each run of a window's elements
// that is inside of the image.
template <typename Piece>
void ForEachPiece(const Windows& w, int64_t window_y, int64_t window_x, Piece&& piece) {
  const int64_t start_x = w.x.Start(window_x);
  const int64_t begin_x = w.x.Begin(window_x), end_x = w.x.End(window_x);
  if (begin_x >= end_x) return;
  for (int64_t y = w.y.Begin(window_y); y < w.y.End(window_y); ++y) {
    const int64_t in_window = (y - w.y.Start(window_y)) * w.x.size + begin_x - start_x;
    piece(in_window * w.channels, (y * w.x.input + begin_x) * w.channels,
          (end_x - begin_x) * w.channels);
  }
}

// Calls row(image, window_y, window_x) for the windows [begin, end) of all images.
template <typename Row>
void ForEachWindow(const Windows& w, int64_t begin, int64_t end, Row&& row) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t in_image = i % w.Count();
    row(i / w.Count(), in_image / w.x.count, in_image % w.x.count);
  }
}

void GatherWindows(const Convolution& conv, const float* images, int64_t begin, int64_t end,
                   float* matrix) {
  const Windows& w = conv.windows;
  if (w.y.IsPadded() || w.x.IsPadded())
    std::memset(matrix, 0, (end - begin) * conv.depth * sizeof(float));
  ForEachWindow(w, begin, end, [&](int64_t image, int64_t window_y, int64_t window_x) {
    const float* const from = images + image * w.ImageSize();
    ForEachPiece(w, window_y, window_x, [&](int64_t to, int64_t at, int64_t count) {
      std::memcpy(matrix + to, from + at, count * sizeof(float));
    });
    matrix += conv.depth;
  });
}

void ScatterWindows(const Convolution& conv, const float* matrix, int64_t begin, int64_t end,
                    float* images) {
  const Windows& w = conv.windows;
  ForEachWindow(w, begin, end, [&](int64_t image, int64_t window_y, int64_t window_x) {
    float* const to = images + image * w.ImageSize();
    ForEachPiece(w, window_y, window_x, [&](int64_t from, int64_t at, int64_t count) {
      AddTo(to + at, matrix + from, count);
    });
    matrix += conv.depth;
  });
}

absl::StatusOr<float*> Scratchpad(KernelContext& context, int i, int64_t rows, int64_t columns) {
  const Shape shape({rows, columns});
  void* const memory = ReserveFor(shape, kFloat32, context.scratch().buffers[i]);
  if (memory == nullptr) return NoMemory(shape);
  return static_cast<float*>(memory);
}

class ConvolutionKernel : public Kernel {
 public:
  explicit ConvolutionKernel(const NodeSpec& spec)
      : stride_y_(spec.attrs.Ints("strides")[0]),
        stride_x_(spec.attrs.Ints("strides")[1]),
        same_(spec.attrs.String("padding") == "same") {}

 protected:
  absl::StatusOr<Convolution> Describe(const Shape& x, const Shape& filter) const {
    if (x[3] != filter[2] || filter[0] == 0 || filter[1] == 0) {
      return absl::InvalidArgumentError(absl::StrCat("a filter of shape ", filter.ToString(),
                                                     " for images of shape ", x.ToString()));
    }
    return Convolution{MakeWindows(x, filter[0], filter[1], stride_y_, stride_x_, same_),
                       filter[0] * filter[1] * filter[2], filter[3]};
  }

  // Of a gradient: (dy, x, filter).
  absl::StatusOr<Convolution> DescribeGradient(KernelContext& context) const {
    MU_ASSIGN_OR_RETURN(const Convolution conv,
                        Describe(context.input(1).shape, context.input(2).shape));
    if (context.input(0).shape == conv.Result()) return conv;
    return absl::InvalidArgumentError(absl::StrCat("dy of shape ",
                                                   context.input(0).shape.ToString(), " but conv2d",
                                                   " makes ", conv.Result().ToString()));
  }

 private:
  const int64_t stride_y_;
  const int64_t stride_x_;
  const bool same_;
};

class Conv2dKernel : public ConvolutionKernel {
 public:
  using ConvolutionKernel::ConvolutionKernel;
  absl::Status Run(KernelContext& context) const override {
    MU_ASSIGN_OR_RETURN(const Convolution conv,
                        Describe(context.input(0).shape, context.input(1).shape));
    const float* const x = context.in<float>(0);
    const float* const filter = context.in<float>(1);
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, conv.Result()));
    const int64_t rows = conv.Rows(), depth = conv.depth, filters = conv.filters;
    if (conv.IsEmpty()) {
      std::fill(out, out + rows * filters, 0.0f);
      return absl::OkStatus();
    }
    if (conv.IsProduct()) {
      Gemm(false, false, rows, filters, depth, x, filter, out, Epilogue());
      return absl::OkStatus();
    }
    MU_ASSIGN_OR_RETURN(float* const matrix, Scratchpad(context, 0, conv.BlockRows(), depth));
    for (int64_t begin = 0; begin < rows; begin += conv.BlockRows()) {
      const int64_t end = std::min(begin + conv.BlockRows(), rows);
      GatherWindows(conv, x, begin, end, matrix);
      Gemm(false, false, end - begin, filters, depth, matrix, filter, out + begin * filters,
           Epilogue());
    }
    return absl::OkStatus();
  }
};

class InputGradKernel : public ConvolutionKernel {
 public:
  using ConvolutionKernel::ConvolutionKernel;
  absl::Status Run(KernelContext& context) const override {
    MU_ASSIGN_OR_RETURN(const Convolution conv, DescribeGradient(context));
    const float* const dy = context.in<float>(0);
    const float* const filter = context.in<float>(2);
    const Shape& like = context.input(1).shape;
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, like));
    const int64_t rows = conv.Rows(), depth = conv.depth, filters = conv.filters;
    if (conv.IsProduct() && !conv.IsEmpty()) {
      Gemm(false, true, rows, depth, filters, dy, filter, out, Epilogue());
      return absl::OkStatus();
    }
    std::fill(out, out + like.elements(), 0.0f);
    if (conv.IsEmpty()) return absl::OkStatus();
    MU_ASSIGN_OR_RETURN(float* const matrix, Scratchpad(context, 0, conv.BlockRows(), depth));
    for (int64_t begin = 0; begin < rows; begin += conv.BlockRows()) {
      const int64_t end = std::min(begin + conv.BlockRows(), rows);
      Gemm(false, true, end - begin, depth, filters, dy + begin * filters, filter, matrix,
           Epilogue());
      ScatterWindows(conv, matrix, begin, end, out);
    }
    return absl::OkStatus();
  }
  bool ReadsElements(int input) const override { return input != 1; }
};

class FilterGradKernel : public ConvolutionKernel {
 public:
  using ConvolutionKernel::ConvolutionKernel;
  absl::Status Run(KernelContext& context) const override {
    MU_ASSIGN_OR_RETURN(const Convolution conv, DescribeGradient(context));
    const float* const dy = context.in<float>(0);
    const float* const x = context.in<float>(1);
    const Shape& like = context.input(2).shape;
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, like));
    const int64_t rows = conv.Rows(), depth = conv.depth, filters = conv.filters;
    if (conv.IsProduct() && !conv.IsEmpty()) {
      Gemm(true, false, depth, filters, rows, x, dy, out, Epilogue());
      return absl::OkStatus();
    }
    std::fill(out, out + like.elements(), 0.0f);
    if (conv.IsEmpty()) return absl::OkStatus();
    MU_ASSIGN_OR_RETURN(float* const matrix, Scratchpad(context, 0, conv.BlockRows(), depth));
    MU_ASSIGN_OR_RETURN(float* const part, Scratchpad(context, 1, depth, filters));
    for (int64_t begin = 0; begin < rows; begin += conv.BlockRows()) {
      const int64_t end = std::min(begin + conv.BlockRows(), rows);
      GatherWindows(conv, x, begin, end, matrix);
      Gemm(true, false, depth, filters, end - begin, matrix, dy + begin * filters, part,
           Epilogue());
      AddTo(out, part, depth * filters);
    }
    return absl::OkStatus();
  }
  bool ReadsElements(int input) const override { return input != 2; }
};

template <typename K>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return KernelPtr(new K(spec));
}

}  // namespace

void RegisterConvKernels(KernelTable& table) {
  table.Add("conv2d", Make<Conv2dKernel>);
  table.Add("conv2d_input_grad", Make<InputGradKernel>);
  table.Add("conv2d_filter_grad", Make<FilterGradKernel>);
}

}  // namespace mu
