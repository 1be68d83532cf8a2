// Convolutions of images [batch, height, width, channels]: oneDNN computes them; shapes, empty
// ones and memory are looked after here.
#include <algorithm>
#include <utility>

#include "common/exec/kernel_table.h"
#include "common/exec/onednn_conv.h"

namespace mu {
namespace {

Shape ResultOf(const ConvolutionSizes& sizes) {
  const Windows& w = sizes.windows;
  return Shape({w.batch, w.y.count, w.x.count, sizes.filters});
}

bool IsEmpty(const ConvolutionSizes& sizes) {
  return ResultOf(sizes).elements() == 0 || sizes.windows.channels == 0;
}

struct PreparedConvolution : ScratchState {
  ConvolutionSizes sizes;
  std::unique_ptr<OnednnConvolution> convolution;
};

// Batches have one size but for the last of an epoch, so what was made for the last step is kept.
absl::StatusOr<const OnednnConvolution*> Prepare(ConvolutionPart part,
                                                 const ConvolutionSizes& sizes, Scratch& scratch) {
  auto* state = static_cast<PreparedConvolution*>(scratch.state.get());
  if (state == nullptr || state->sizes != sizes) {
    auto made = std::make_unique<PreparedConvolution>();
    made->sizes = sizes;
    MU_ASSIGN_OR_RETURN(made->convolution, OnednnConvolution::Make(part, sizes));
    state = made.get();
    scratch.state = std::move(made);
  }
  return state->convolution.get();
}

absl::Status Convolve(ConvolutionPart part, const ConvolutionSizes& sizes, const float* first,
                      const float* second, float* out, Scratch& scratch) {
  MU_ASSIGN_OR_RETURN(const OnednnConvolution* const convolution, Prepare(part, sizes, scratch));
  const size_t bytes = convolution->scratch_bytes();
  void* const memory = scratch.buffers[0].TryReserve(bytes);
  if (memory == nullptr) return NoMemory(Shape({static_cast<int64_t>(bytes / sizeof(float))}));
  return convolution->Run(first, second, out, memory);
}

class ConvolutionKernel : public Kernel {
 public:
  explicit ConvolutionKernel(const NodeSpec& spec)
      : stride_y_(spec.attrs.Ints("strides")[0]),
        stride_x_(spec.attrs.Ints("strides")[1]),
        same_(spec.attrs.String("padding") == "same") {}

 protected:
  absl::StatusOr<ConvolutionSizes> Describe(const Shape& x, const Shape& filter) const {
    if (x[3] != filter[2] || filter[0] == 0 || filter[1] == 0) {
      return absl::InvalidArgumentError(absl::StrCat("a filter of shape ", filter.ToString(),
                                                     " for images of shape ", x.ToString()));
    }
    return ConvolutionSizes{MakeWindows(x, filter[0], filter[1], stride_y_, stride_x_, same_),
                            filter[3]};
  }

  // Of a gradient: (dy, x, filter).
  absl::StatusOr<ConvolutionSizes> DescribeGradient(KernelContext& context) const {
    MU_ASSIGN_OR_RETURN(const ConvolutionSizes sizes,
                        Describe(context.input(1).shape, context.input(2).shape));
    const Shape result = ResultOf(sizes);
    if (context.input(0).shape == result) return sizes;
    return absl::InvalidArgumentError(absl::StrCat("dy of shape ",
                                                   context.input(0).shape.ToString(), " but conv2d",
                                                   " makes ", result.ToString()));
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
    MU_ASSIGN_OR_RETURN(const ConvolutionSizes sizes,
                        Describe(context.input(0).shape, context.input(1).shape));
    const Shape result = ResultOf(sizes);
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, result));
    if (IsEmpty(sizes)) {
      std::fill(out, out + result.elements(), 0.0f);
      return absl::OkStatus();
    }
    return Convolve(ConvolutionPart::kResult, sizes, context.in<float>(0), context.in<float>(1),
                    out, context.scratch());
  }
};

// The gradient of the images (of = 1) or of the filter (of = 2).
template <ConvolutionPart part, int of>
class ConvolutionGradientKernel : public ConvolutionKernel {
 public:
  using ConvolutionKernel::ConvolutionKernel;
  absl::Status Run(KernelContext& context) const override {
    MU_ASSIGN_OR_RETURN(const ConvolutionSizes sizes, DescribeGradient(context));
    const Shape& like = context.input(of).shape;
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, like));
    if (IsEmpty(sizes)) {
      std::fill(out, out + like.elements(), 0.0f);
      return absl::OkStatus();
    }
    return Convolve(part, sizes, context.in<float>(0), context.in<float>(3 - of), out,
                    context.scratch());
  }
  bool ReadsElements(int input) const override { return input != of; }
};

template <typename K>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return KernelPtr(new K(spec));
}

}  // namespace

void RegisterConvKernels(KernelTable& table) {
  table.Add("conv2d", Make<Conv2dKernel>);
  table.Add("conv2d_input_grad",
            Make<ConvolutionGradientKernel<ConvolutionPart::kImagesGradient, 1>>);
  table.Add("conv2d_filter_grad",
            Make<ConvolutionGradientKernel<ConvolutionPart::kFilterGradient, 2>>);
}

}  // namespace mu
