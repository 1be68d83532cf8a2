// Bags of rows, combined by (weighted) sum, mean or sum / sqrt(size), and the gradient of that.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/exec/kernel_table.h"
#include "common/exec/simd.h"
#include "common/exec/splits.h"

namespace mu {
namespace {

struct Bags {
  const int32_t* positions;
  const int32_t* splits;
  const float* weights;  // null: all 1
  int64_t values;
  int64_t bags;
};

absl::Status CheckBags(const View& positions, const View& splits, const View* weights, int64_t rows,
                       Bags* bags) {
  *bags = {positions.as<int32_t>(), splits.as<int32_t>(),
           weights == nullptr ? nullptr : weights->as<float>(), positions.elements(),
           splits.elements() - 1};
  if (weights != nullptr && weights->elements() != bags->values) {
    return absl::InvalidArgumentError(
        absl::StrCat(weights->elements(), " weights for ", bags->values, " values"));
  }
  MU_RETURN_IF_ERROR(CheckSplits(bags->splits, bags->bags, bags->values));
  bool inside = true;
  for (int64_t i = 0; i < bags->values; ++i) {
    inside &= static_cast<uint32_t>(bags->positions[i]) < static_cast<uint64_t>(rows);
  }
  if (!inside) return absl::OutOfRangeError(absl::StrCat("a position is outside ", rows, " rows"));
  return absl::OkStatus();
}

enum class Divisor { kNone, kSum, kRootOfSquares };  // of the bag's weights

Divisor DivisorOf(const std::string& combiner) {
  if (combiner == "mean") return Divisor::kSum;
  return combiner == "sqrtn" ? Divisor::kRootOfSquares : Divisor::kNone;
}

// What each value of bag `b` is multiplied by after its weight; 0 for a bag that weighs nothing.
float Share(const Bags& bags, int64_t b, Divisor divisor) {
  if (divisor == Divisor::kNone) return 1.0f;
  const int64_t begin = bags.splits[b], end = bags.splits[b + 1];
  float sum = static_cast<float>(end - begin);
  if (bags.weights != nullptr) {
    sum = 0;
    for (int64_t i = begin; i < end; ++i) {
      const float weight = bags.weights[i];
      sum += divisor == Divisor::kSum ? weight : weight * weight;
    }
  }
  if (sum == 0) return 0.0f;
  return 1.0f / (divisor == Divisor::kSum ? sum : std::sqrt(sum));
}

class SegmentCombineKernel : public Kernel {
 public:
  explicit SegmentCombineKernel(Divisor divisor) : divisor_(divisor) {}
  absl::Status Run(KernelContext& context) const override {
    const View& rows = context.input(0);
    const int64_t dim = rows.shape[1];
    Bags bags;
    MU_RETURN_IF_ERROR(CheckBags(context.input(1), context.input(2),
                                 context.num_inputs() > 3 ? &context.input(3) : nullptr,
                                 rows.shape[0], &bags));
    const float* const from = rows.as<float>();
    MU_ASSIGN_OR_RETURN(float* out, context.Output<float>(0, Shape({bags.bags, dim})));
    for (int64_t b = 0; b < bags.bags; ++b, out += dim) {
      std::fill(out, out + dim, 0.0f);
      for (int64_t i = bags.splits[b]; i < bags.splits[b + 1]; ++i) {
        const float* const row = from + bags.positions[i] * dim;
        if (bags.weights == nullptr) {
          AddTo(out, row, dim);
        } else {
          AddScaled(out, bags.weights[i], row, dim);
        }
      }
      const float share = Share(bags, b, divisor_);
      if (divisor_ != Divisor::kNone) {
        for (int64_t d = 0; d < dim; ++d) out[d] *= share;
        if (share == 0) std::fill(out, out + dim, 0.0f);
      }
    }
    return absl::OkStatus();
  }

 private:
  const Divisor divisor_;
};

class SegmentCombineGradKernel : public Kernel {
 public:
  explicit SegmentCombineGradKernel(Divisor divisor) : divisor_(divisor) {}
  absl::Status Run(KernelContext& context) const override {
    const View& dy = context.input(0);
    const Shape& like = context.input(3).shape;
    Bags bags;
    MU_RETURN_IF_ERROR(CheckBags(context.input(1), context.input(2),
                                 context.num_inputs() > 4 ? &context.input(4) : nullptr, like[0],
                                 &bags));
    const int64_t dim = like[1];
    if (dy.shape != Shape({bags.bags, dim})) {
      return absl::InvalidArgumentError(absl::StrCat("dy of shape ", dy.shape.ToString(), " for ",
                                                     bags.bags, " bags of rows of ", dim));
    }
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, like));
    std::memset(out, 0, like.elements() * sizeof(float));
    const float* from = dy.as<float>();
    for (int64_t b = 0; b < bags.bags; ++b, from += dim) {
      const float share = Share(bags, b, divisor_);
      for (int64_t i = bags.splits[b]; i < bags.splits[b + 1]; ++i) {
        const float factor = bags.weights == nullptr ? share : share * bags.weights[i];
        float* const to = out + bags.positions[i] * dim;
        if (factor == 1.0f) {
          AddTo(to, from, dim);
        } else {
          AddScaled(to, factor, from, dim);
        }
      }
    }
    return absl::OkStatus();
  }
  bool ReadsElements(int input) const override { return input != 3; }

 private:
  const Divisor divisor_;
};

template <typename K>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return KernelPtr(new K(DivisorOf(spec.attrs.String("combiner"))));
}

}  // namespace

void RegisterSegmentKernels(KernelTable& table) {
  table.Add("segment_combine", Make<SegmentCombineKernel>);
  table.Add("segment_combine_grad", Make<SegmentCombineGradKernel>);
}

}  // namespace mu
