#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"
#include "common/graph/window_rules.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

constexpr int64_t kLargestWindow = 1 << 16;

absl::Status CheckImages(const TensorSpec& x, absl::string_view what) {
  MU_RETURN_IF_ERROR(CheckFloat(x, what));
  return CheckRank(x, 4, what);
}

// Two numbers from 1 on, for height and width.
absl::Status CheckPair(const AttrReader& attrs, absl::string_view name) {
  const auto pair = attrs.Ints(name);
  bool fits = pair.size() == 2;
  for (const int64_t number : pair) fits = fits && number >= 1 && number <= kLargestWindow;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("attribute \"", name,
                                                 "\" must be two numbers from 1 to ",
                                                 kLargestWindow, ", for height and width"));
}

absl::StatusOr<bool> IsSame(const AttrReader& attrs) {
  const std::string& padding = attrs.String("padding");
  if (padding == "same") return true;
  if (padding == "valid") return false;
  return absl::InvalidArgumentError(
      absl::StrCat("padding must be same or valid, got \"", padding, "\""));
}

// The shape of what windows of `height` and `width` make of images.
absl::StatusOr<Shape> Slide(const Shape& images, int64_t height, int64_t width, int64_t channels,
                            const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckPair(attrs, "strides"));
  MU_ASSIGN_OR_RETURN(const bool same, IsSame(attrs));
  const auto strides = attrs.Ints("strides");
  Shape shape({images[0], WindowCount(images[1], height, strides[0], same),
               WindowCount(images[2], width, strides[1], same), channels});
  if (height == kUnknownDim) shape[1] = kUnknownDim;
  if (width == kUnknownDim) shape[2] = kUnknownDim;
  if (!same && (shape[1] == 0 || shape[2] == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window of ", height, " by ", width, " does not fit into images of shape ",
                     images.ToString(), "; padding \"same\" would add zeros"));
  }
  return shape;
}

absl::StatusOr<Shape> ConvolutionShape(const TensorSpec& x, const TensorSpec& filter,
                                       const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckImages(x, "x"));
  MU_RETURN_IF_ERROR(CheckFloat(filter, "filter"));
  MU_RETURN_IF_ERROR(CheckRank(filter, 4, "filter"));
  const Shape& f = filter.shape;
  if (!MergeDims(x.shape[3], f[2]).ok()) {
    return absl::InvalidArgumentError(absl::StrCat("x ", x.ToString(), " has ", x.shape[3],
                                                   " channels, filter ", filter.ToString(),
                                                   " reads ", f[2]));
  }
  if (f[0] == 0 || f[1] == 0 || f[0] > kLargestWindow || f[1] > kLargestWindow) {
    return absl::InvalidArgumentError(
        absl::StrCat("filter ", filter.ToString(), " is too small or too large"));
  }
  return Slide(x.shape, f[0], f[1], f[3], attrs);
}

SpecsOr InferConv2d(Inputs in, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(Shape shape, ConvolutionShape(in[0], in[1], attrs));
  return std::vector<TensorSpec>{{kFloat32, shape}};
}

// (dy, x, filter) -> the shape of x or of filter.
SpecsOr InferConvGrad(Inputs in, const AttrReader& attrs, int result) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "dy"));
  MU_ASSIGN_OR_RETURN(Shape shape, ConvolutionShape(in[1], in[2], attrs));
  MU_RETURN_IF_ERROR(MergeShapes(in[0].shape, shape).status());
  return std::vector<TensorSpec>{in[result]};
}

absl::StatusOr<Shape> PoolShape(const TensorSpec& x, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckImages(x, "x"));
  MU_RETURN_IF_ERROR(CheckPair(attrs, "size"));
  const auto size = attrs.Ints("size");
  return Slide(x.shape, size[0], size[1], x.shape[3], attrs);
}

SpecsOr InferPool(Inputs in, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(Shape shape, PoolShape(in[0], attrs));
  return std::vector<TensorSpec>{{kFloat32, shape}};
}

SpecsOr InferPoolGrad(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "dy"));
  MU_ASSIGN_OR_RETURN(Shape shape, PoolShape(in[1], attrs));
  MU_RETURN_IF_ERROR(MergeShapes(in[0].shape, shape).status());
  return std::vector<TensorSpec>{in[1]};
}

}  // namespace

void RegisterImageOps(OpTable& table) {
  const std::vector<AttrDef> sliding = {Required("strides", AttrKind::kInts),
                                        Required("padding", AttrKind::kString)};
  std::vector<AttrDef> pooling = sliding;
  pooling.push_back(Required("size", AttrKind::kInts));

  table.BeginSection(
      "Images",
      "Images are [batch, height, width, channels]. `strides` and `size` are for height and width. "
      "padding \"valid\" takes the windows that lie inside of the image; \"same\" gives "
      "ceil(size / stride) windows, what is added on both sides differs by at most one, the larger "
      "part comes last.");
  table.Add(MakeOp("conv2d", 2, 2, InferConv2d, sliding),
            "(x: float32[b, h, w, c], filter: float32[fh, fw, c, k]) -> float32[b, oh, ow, k]",
            "For each window the sum of its elements times the filter's (cross-correlation); "
            "outside of the image there are zeros.");
  table.Add(
      MakeOp(
          "conv2d_input_grad", 3, 3,
          [](Inputs in, const AttrReader& attrs) { return InferConvGrad(in, attrs, 1); }, sliding),
      "(dy: float32[b, oh, ow, k], x, filter) -> float32, x's shape",
      "The gradient of conv2d's x; only the shape of x is read.");
  table.Add(
      MakeOp(
          "conv2d_filter_grad", 3, 3,
          [](Inputs in, const AttrReader& attrs) { return InferConvGrad(in, attrs, 2); }, sliding),
      "(dy: float32[b, oh, ow, k], x, filter) -> float32, filter's shape",
      "The gradient of conv2d's filter; only the shape of filter is read.");
  table.Add(MakeOp("max_pool2d", 1, 1, InferPool, pooling),
            "(x: float32[b, h, w, c]) -> float32[b, oh, ow, c]",
            "The largest element of each window; NaN if one is NaN.");
  table.Add(MakeOp("max_pool2d_grad", 2, 2, InferPoolGrad, pooling),
            "(dy: float32[b, oh, ow, c], x: float32[b, h, w, c]) -> float32, x's shape",
            "dy at the largest element of its window (the first of several), zeros elsewhere; "
            "windows that overlap add up.");
  table.Add(MakeOp("avg_pool2d", 1, 1, InferPool, pooling),
            "(x: float32[b, h, w, c]) -> float32[b, oh, ow, c]",
            "The mean of each window's elements that are inside of the image.");
  table.Add(MakeOp("avg_pool2d_grad", 2, 2, InferPoolGrad, pooling),
            "(dy: float32[b, oh, ow, c], x: float32[b, h, w, c]) -> float32, x's shape",
            "dy spread over its window; only the shape of x is read.");
}

}  // namespace mu
