// Kernels that copy parts of tensors: concat, slice and their gradients. Elements are bytes to
// them.
#include <algorithm>
#include <cstring>

#include "common/exec/broadcast.h"
#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"
#include "common/exec/simd.h"

namespace mu {
namespace {

// Copies `rows` runs of `width` bytes. Runs of 64 bytes (embeddings of 16 floats) and of one float
// are frequent.
void CopyRuns(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t rows,
              int64_t width) {
  if (width == to_stride && width == from_stride) {
    if (rows * width > 0) std::memcpy(to, from, rows * width);
  } else if (width == 64) {
    for (int64_t i = 0; i < rows; ++i, to += to_stride, from += from_stride)
      std::memcpy(to, from, 64);
  } else if (width == 8) {
    for (int64_t i = 0; i < rows; ++i, to += to_stride, from += from_stride)
      std::memcpy(to, from, 8);
  } else if (width == 4) {
    for (int64_t i = 0; i < rows; ++i, to += to_stride, from += from_stride)
      std::memcpy(to, from, 4);
  } else if (width > 0) {
    for (int64_t i = 0; i < rows; ++i, to += to_stride, from += from_stride)
      std::memcpy(to, from, width);
  }
}

int64_t Product(const Shape& shape, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; ++i) n *= shape[i];
  return n;
}

absl::Status CheckSameBut(int axis, const Shape& a, const Shape& b) {
  for (int i = 0; i < a.rank(); ++i) {
    if (i != axis && a[i] != b[i]) {
      return absl::InvalidArgumentError(absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(),
                                                     " differ in another axis than ", axis));
    }
  }
  return absl::OkStatus();
}

class ConcatKernel : public Kernel {
 public:
  ConcatKernel(int axis, DType dtype) : axis_(axis), element_(ElementSize(dtype)) {}
  absl::Status Run(KernelContext& context) const override {
    Shape shape = context.input(0).shape;
    for (int i = 1; i < context.num_inputs(); ++i) {
      MU_RETURN_IF_ERROR(CheckSameBut(axis_, shape, context.input(i).shape));
      shape[axis_] += context.input(i).shape[axis_];
    }
    const int64_t outer = Product(shape, 0, axis_);
    const int64_t inner = Product(shape, axis_ + 1, shape.rank()) * element_;
    const int64_t stride = shape[axis_] * inner;
    MU_ASSIGN_OR_RETURN(char* to, context.Output<char>(0, shape));
    for (int i = 0; i < context.num_inputs(); ++i) {
      const int64_t width = context.input(i).shape[axis_] * inner;
      CopyRuns(to, stride, context.in<char>(i), width, outer, width);
      to += width;
    }
    return absl::OkStatus();
  }

 private:
  const int axis_;
  const int64_t element_;
};

class ConcatPieceKernel : public Kernel {
 public:
  ConcatPieceKernel(int axis, int index, DType dtype)
      : axis_(axis), index_(index), element_(ElementSize(dtype)) {}
  absl::Status Run(KernelContext& context) const override {
    const Shape& whole = context.input(0).shape;
    int64_t begin = 0, total = 0;
    for (int i = 1; i < context.num_inputs(); ++i) {
      MU_RETURN_IF_ERROR(CheckSameBut(axis_, whole, context.input(i).shape));
      if (i == index_ + 1) begin = total;
      total += context.input(i).shape[axis_];
    }
    if (total != whole[axis_]) {
      return absl::InvalidArgumentError(
          absl::StrCat("the pieces have ", total, " entries along axis ", axis_, ", dy of shape ",
                       whole.ToString(), " has another number"));
    }
    const Shape& shape = context.input(index_ + 1).shape;
    const int64_t inner = Product(shape, axis_ + 1, shape.rank()) * element_;
    const int64_t width = shape[axis_] * inner;
    MU_ASSIGN_OR_RETURN(char* const out, context.Output<char>(0, shape));
    CopyRuns(out, width, context.in<char>(0) + begin * inner, whole[axis_] * inner,
             Product(shape, 0, axis_), width);
    return absl::OkStatus();
  }
  bool ReadsElements(int input) const override { return input == 0; }

 private:
  const int axis_;
  const int index_;
  const int64_t element_;
};

// Copies a box between a tensor of shape `whole`, where it begins at `begin`, and a dense one of
// shape `box`.
void CopyBox(const Shape& whole, const std::vector<int64_t>& begin, const Shape& box,
             int64_t element, char* whole_data, char* box_data, bool into_whole) {
  const int rank = box.rank();
  if (box.elements() == 0) return;
  int split = rank;  // axes from here on are taken whole: one run
  while (split > 0 && box[split - 1] == whole[split - 1]) --split;
  if (split > 0) --split;
  const int64_t inner = Product(whole, split + 1, rank) * element;
  const int64_t width = rank == 0 ? element : box[split] * inner;
  const int64_t runs = split > 0 ? box[split - 1] : 1;
  const int64_t whole_stride = rank == 0 ? element : whole[split] * inner;
  const int64_t boxes = Product(box, 0, std::max(split - 1, 0));
  int64_t index[kMaxBroadcastAxes] = {};
  for (int64_t i = 0; i < boxes; ++i) {
    int64_t offset = 0;
    for (int axis = 0; axis < rank; ++axis)
      offset = offset * whole[axis] + begin[axis] + index[axis];
    char* const at = whole_data + offset * element;
    if (into_whole) {
      CopyRuns(at, whole_stride, box_data, width, runs, width);
    } else {
      CopyRuns(box_data, width, at, whole_stride, runs, width);
    }
    box_data += runs * width;
    for (int axis = split - 2; axis >= 0; --axis) {
      if (++index[axis] < box[axis]) break;
      index[axis] = 0;
    }
  }
}

absl::Status CheckBox(const Shape& whole, const std::vector<int64_t>& begin, const Shape& box) {
  for (int i = 0; i < whole.rank(); ++i) {
    if (box[i] < 0 || begin[i] > whole[i] || box[i] > whole[i] - begin[i]) {
      return absl::InvalidArgumentError(absl::StrCat("a slice from ", begin[i], " of size ", box[i],
                                                     " leaves axis ", i, " of shape ",
                                                     whole.ToString()));
    }
  }
  return absl::OkStatus();
}

class SliceKernel : public Kernel {
 public:
  SliceKernel(absl::Span<const int64_t> begin, absl::Span<const int64_t> size, DType dtype)
      : begin_(begin.begin(), begin.end()),
        size_(size.begin(), size.end()),
        element_(ElementSize(dtype)) {}
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    Shape box = x.shape;
    for (int i = 0; i < box.rank(); ++i) box[i] = size_[i] >= 0 ? size_[i] : x.shape[i] - begin_[i];
    MU_RETURN_IF_ERROR(CheckBox(x.shape, begin_, box));
    MU_ASSIGN_OR_RETURN(char* const out, context.Output<char>(0, box));
    CopyBox(x.shape, begin_, box, element_, x.as<char>(), out, /*into_whole=*/false);
    return absl::OkStatus();
  }

 private:
  const std::vector<int64_t> begin_;
  const std::vector<int64_t> size_;
  const int64_t element_;
};

class SliceGradKernel : public Kernel {
 public:
  explicit SliceGradKernel(absl::Span<const int64_t> begin) : begin_(begin.begin(), begin.end()) {}
  absl::Status Run(KernelContext& context) const override {
    const View& dy = context.input(0);
    const Shape& like = context.input(1).shape;
    MU_RETURN_IF_ERROR(CheckBox(like, begin_, dy.shape));
    MU_ASSIGN_OR_RETURN(char* const out, context.Output<char>(0, like));
    std::memset(out, 0, like.elements() * sizeof(float));
    CopyBox(like, begin_, dy.shape, sizeof(float), out, dy.as<char>(), /*into_whole=*/true);
    return absl::OkStatus();
  }
  bool ReadsElements(int input) const override { return input == 0; }

 private:
  const std::vector<int64_t> begin_;
};

template <typename T>
class PadKernel : public Kernel {
 public:
  PadKernel(absl::Span<const int64_t> before, absl::Span<const int64_t> after, float value)
      : before_(before.begin(), before.end()),
        after_(after.begin(), after.end()),
        value_(static_cast<T>(value)) {}
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    Shape whole = x.shape;
    for (int i = 0; i < whole.rank(); ++i) whole[i] += before_[i] + after_[i];
    MU_ASSIGN_OR_RETURN(T* const out, context.Output<T>(0, whole));
    std::fill(out, out + whole.elements(), value_);
    CopyBox(whole, before_, x.shape, sizeof(T), reinterpret_cast<char*>(out), x.as<char>(),
            /*into_whole=*/true);
    return absl::OkStatus();
  }

 private:
  const std::vector<int64_t> before_;
  const std::vector<int64_t> after_;
  const T value_;
};

class UnpadKernel : public Kernel {
 public:
  UnpadKernel(absl::Span<const int64_t> before, DType dtype)
      : before_(before.begin(), before.end()), element_(ElementSize(dtype)) {}
  absl::Status Run(KernelContext& context) const override {
    const View& dy = context.input(0);
    const Shape& like = context.input(1).shape;
    MU_RETURN_IF_ERROR(CheckBox(dy.shape, before_, like));
    MU_ASSIGN_OR_RETURN(char* const out, context.Output<char>(0, like));
    CopyBox(dy.shape, before_, like, element_, dy.as<char>(), out, /*into_whole=*/false);
    return absl::OkStatus();
  }
  bool ReadsElements(int input) const override { return input == 0; }

 private:
  const std::vector<int64_t> before_;
  const int64_t element_;
};

absl::StatusOr<KernelPtr> MakePad(const NodeSpec& spec) {
  const float value = spec.attrs.Float("value");
  return DispatchType(NumericTypes(), spec.inputs[0].dtype, spec, [&spec, value](auto zero) {
    return KernelPtr(
        new PadKernel<decltype(zero)>(spec.attrs.Ints("before"), spec.attrs.Ints("after"), value));
  });
}
absl::StatusOr<KernelPtr> MakeUnpad(const NodeSpec& spec) {
  return KernelPtr(new UnpadKernel(spec.attrs.Ints("before"), spec.inputs[0].dtype));
}

absl::StatusOr<KernelPtr> MakeConcat(const NodeSpec& spec) {
  return KernelPtr(new ConcatKernel(spec.attrs.Int("axis"), spec.inputs[0].dtype));
}
absl::StatusOr<KernelPtr> MakeConcatPiece(const NodeSpec& spec) {
  return KernelPtr(
      new ConcatPieceKernel(spec.attrs.Int("axis"), spec.attrs.Int("index"), spec.inputs[0].dtype));
}
absl::StatusOr<KernelPtr> MakeSlice(const NodeSpec& spec) {
  return KernelPtr(
      new SliceKernel(spec.attrs.Ints("begin"), spec.attrs.Ints("size"), spec.inputs[0].dtype));
}
absl::StatusOr<KernelPtr> MakeSliceGrad(const NodeSpec& spec) {
  return KernelPtr(new SliceGradKernel(spec.attrs.Ints("begin")));
}

}  // namespace

void RegisterCopyKernels(KernelTable& table) {
  table.Add("concat", MakeConcat);
  table.Add("concat_piece", MakeConcatPiece);
  table.Add("slice", MakeSlice);
  table.Add("slice_grad", MakeSliceGrad);
  table.Add("pad", MakePad);
  table.Add("unpad", MakeUnpad);
}

}  // namespace mu
