// gather along an axis, and its gradient. A tensor is seen as [outer, size, inner] around the axis.
#include <cstring>

#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"
#include "common/exec/simd.h"

namespace mu {
namespace {

struct Split {
  int64_t outer = 1, size = 0, inner = 1;
};

Split SplitAt(const Shape& shape, int axis) {
  Split split;
  for (int i = 0; i < axis; ++i) split.outer *= shape[i];
  split.size = shape[axis];
  for (int i = axis + 1; i < shape.rank(); ++i) split.inner *= shape[i];
  return split;
}

Shape GatheredShape(const Shape& params, const Shape& indices, int axis) {
  Shape shape;
  for (int i = 0; i < params.rank(); ++i) {
    if (i != axis) {
      shape.Append(params[i]);
    } else {
      for (const int64_t dim : indices) shape.Append(dim);
    }
  }
  return shape;
}

template <typename I>
absl::Status CheckIndices(const I* indices, int64_t n, int64_t size) {
  bool bad = false;
  for (int64_t i = 0; i < n; ++i) bad |= indices[i] < 0 || indices[i] >= size;
  if (!bad) return absl::OkStatus();
  for (int64_t i = 0; i < n; ++i) {
    if (indices[i] < 0 || indices[i] >= size) {
      return absl::OutOfRangeError(absl::StrCat("index ", indices[i], " (number ", i, " of ", n,
                                                ") is outside an axis of ", size, " entries"));
    }
  }
  return absl::OkStatus();
}

// Rows of `width` elements: out[i] = from[indices[i]].
template <typename T, typename I>
void GatherRows(const T* from, const I* indices, int64_t n, int64_t width, T* out) {
  constexpr int64_t kAhead = 16;  // rows of a large table are rarely in the cache
  for (int64_t i = 0; i < n; ++i) {
    if (i + kAhead < n) __builtin_prefetch(from + indices[i + kAhead] * width);
    const T* const row = from + indices[i] * width;
    if (width * sizeof(T) == 64) {
      std::memcpy(out + i * width, row, 64);
    } else {
      std::memcpy(out + i * width, row, width * sizeof(T));
    }
  }
}

// Single elements out of each of many short rows (inner is 1).
template <typename T, typename I>
void GatherElements(const T* from, const Split& split, const I* indices, int64_t n, T* out) {
  for (int64_t row = 0; row < split.outer; ++row, from += split.size, out += n) {
    for (int64_t j = 0; j < n; ++j) out[j] = from[indices[j]];
  }
}

template <typename T, typename I>
class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(int axis) : axis_(axis) {}
  absl::Status Run(KernelContext& context) const override {
    const View& params = context.input(0);
    const View& indices = context.input(1);
    const Split split = SplitAt(params.shape, axis_);
    const I* const index = indices.as<I>();
    const int64_t n = indices.elements();
    MU_RETURN_IF_ERROR(CheckIndices(index, n, split.size));
    const T* from = params.as<T>();
    MU_ASSIGN_OR_RETURN(T * out,
                        context.Output<T>(0, GatheredShape(params.shape, indices.shape, axis_)));
    if (split.inner == 1 && split.outer > 1) {
      GatherElements(from, split, index, n, out);
      return absl::OkStatus();
    }
    for (int64_t i = 0; i < split.outer;
         ++i, from += split.size * split.inner, out += n * split.inner) {
      GatherRows(from, index, n, split.inner, out);
    }
    return absl::OkStatus();
  }

 private:
  const int axis_;
};

template <typename I>
class GatherGradKernel : public Kernel {
 public:
  explicit GatherGradKernel(int axis) : axis_(axis) {}
  absl::Status Run(KernelContext& context) const override {
    const View& dy = context.input(0);
    const View& indices = context.input(1);
    const Shape& like = context.input(2).shape;
    const Split split = SplitAt(like, axis_);
    const I* const index = indices.as<I>();
    const int64_t n = indices.elements();
    if (dy.shape != GatheredShape(like, indices.shape, axis_)) {
      return absl::InvalidArgumentError(absl::StrCat("dy of shape ", dy.shape.ToString(),
                                                     " is no gather of ", indices.shape.ToString(),
                                                     " indices from ", like.ToString()));
    }
    MU_RETURN_IF_ERROR(CheckIndices(index, n, split.size));
    const float* from = dy.as<float>();
    MU_ASSIGN_OR_RETURN(float* out, context.Output<float>(0, like));
    if (split.inner == 1 && split.outer > 1 &&
        FindSources(index, n, split.size, context.scratch())) {
      const int32_t* const source = static_cast<int32_t*>(context.scratch().buffers[0].Reserve(0));
      SpreadElements(from, split, source, n, out);
      return absl::OkStatus();
    }
    std::memset(out, 0, like.elements() * sizeof(float));
    for (int64_t i = 0; i < split.outer;
         ++i, from += n * split.inner, out += split.size * split.inner) {
      AddRows(from, index, n, split.inner, out);
    }
    return absl::OkStatus();
  }
  bool ReadsElements(int input) const override { return input != 2; }

 private:
  static void AddRows(const float* from, const I* index, int64_t n, int64_t inner, float* out) {
    if (inner == 1) {
      for (int64_t j = 0; j < n; ++j) out[index[j]] += from[j];
    } else if (inner == 16) {
      for (int64_t j = 0; j < n; ++j) AddTo(out + index[j] * 16, from + j * 16, 16);
    } else {
      for (int64_t j = 0; j < n; ++j) AddTo(out + index[j] * inner, from + j * inner, inner);
    }
  }

  // Where no index comes twice: for each output element of a row which element of dy it is, or -1.
  // False otherwise.
  static bool FindSources(const I* index, int64_t n, int64_t size, Scratch& scratch) {
    if (n > INT32_MAX || size > INT32_MAX) return false;
    int32_t* const source =
        static_cast<int32_t*>(scratch.buffers[0].Reserve(size * sizeof(int32_t)));
    std::memset(source, 0xFF, size * sizeof(int32_t));
    for (int64_t j = 0; j < n; ++j) {
      if (source[index[j]] >= 0) return false;
      source[index[j]] = static_cast<int32_t>(j);
    }
    return true;
  }

  static void SpreadElements(const float* from, const Split& split, const int32_t* source,
                             int64_t n, float* out) {
    const __m256 zero = _mm256_setzero_ps();
    for (int64_t row = 0; row < split.outer; ++row, from += n, out += split.size) {
      int64_t i = 0;
      for (; i + 8 <= split.size; i += 8) {
        const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + i));
        const __m256 present = _mm256_castsi256_ps(_mm256_cmpgt_epi32(at, _mm256_set1_epi32(-1)));
        _mm256_storeu_ps(out + i, _mm256_mask_i32gather_ps(zero, from, at, present, 4));
      }
      for (; i < split.size; ++i) out[i] = source[i] < 0 ? 0.0f : from[source[i]];
    }
  }

  const int axis_;
};

absl::StatusOr<KernelPtr> MakeGather(const NodeSpec& spec) {
  const int axis = static_cast<int>(spec.attrs.Int("axis"));
  return DispatchType(IndexTypes(), spec.inputs[1].dtype, spec, [&](auto index) {
    using I = decltype(index);
    return DispatchSize(
               spec.inputs[0].dtype, spec,
               [axis](auto zero) { return KernelPtr(new GatherKernel<decltype(zero), I>(axis)); })
        .value_or(nullptr);
  });
}

absl::StatusOr<KernelPtr> MakeGatherGrad(const NodeSpec& spec) {
  const int axis = static_cast<int>(spec.attrs.Int("axis"));
  return DispatchType(IndexTypes(), spec.inputs[1].dtype, spec, [axis](auto zero) {
    return KernelPtr(new GatherGradKernel<decltype(zero)>(axis));
  });
}

}  // namespace

void RegisterGatherKernels(KernelTable& table) {
  table.Add("gather", MakeGather);
  table.Add("gather_grad", MakeGatherGrad);
}

}  // namespace mu
