// Ragged sequences as rows of one length, and back.
#include <algorithm>
#include <cstring>

#include "common/exec/kernel_table.h"
#include "common/exec/splits.h"

namespace mu {
namespace {

int64_t RowElements(const Shape& values) {
  int64_t n = 1;
  for (int i = 1; i < values.rank(); ++i) n *= values[i];
  return n;
}

// Which values of a sequence are kept: `count` from `first` on.
struct Kept {
  int64_t first;
  int64_t count;
};

Kept KeptOf(const int32_t* splits, int64_t b, int64_t length, bool keep_last) {
  const int64_t size = splits[b + 1] - splits[b];
  const int64_t count = std::min(size, length);
  return {splits[b] + (keep_last ? size - count : 0), count};
}

class PadSequencesKernel : public Kernel {
 public:
  explicit PadSequencesKernel(const NodeSpec& spec)
      : length_(spec.attrs.Int("length")),
        keep_last_(spec.attrs.Bool("keep_last")),
        element_(static_cast<int64_t>(ElementSize(spec.inputs[0].dtype))) {}

  absl::Status Run(KernelContext& context) const override {
    const View& values = context.input(0);
    const int64_t bags = context.input(1).elements() - 1;
    const int32_t* const splits = context.in<int32_t>(1);
    MU_RETURN_IF_ERROR(CheckSplits(splits, bags, values.shape[0]));
    Shape shape({bags, length_});
    for (int i = 1; i < values.shape.rank(); ++i) shape.Append(values.shape[i]);
    const int64_t row = RowElements(values.shape) * element_;
    MU_ASSIGN_OR_RETURN(char* to, context.Output<char>(0, shape));
    if (row == 0) return absl::OkStatus();
    for (int64_t b = 0; b < bags; ++b, to += length_ * row) {
      const Kept kept = KeptOf(splits, b, length_, keep_last_);
      if (kept.count > 0) std::memcpy(to, values.as<char>() + kept.first * row, kept.count * row);
      std::memset(to + kept.count * row, 0, (length_ - kept.count) * row);
    }
    return absl::OkStatus();
  }

 private:
  const int64_t length_;
  const bool keep_last_;
  const int64_t element_;
};

class PadSequencesGradKernel : public Kernel {
 public:
  explicit PadSequencesGradKernel(const NodeSpec& spec)
      : length_(spec.attrs.Int("length")), keep_last_(spec.attrs.Bool("keep_last")) {}

  absl::Status Run(KernelContext& context) const override {
    const View& dy = context.input(0);
    const Shape& like = context.input(2).shape;
    const int64_t bags = context.input(1).elements() - 1;
    const int32_t* const splits = context.in<int32_t>(1);
    MU_RETURN_IF_ERROR(CheckSplits(splits, bags, like[0]));
    Shape shape({bags, length_});
    for (int i = 1; i < like.rank(); ++i) shape.Append(like[i]);
    if (dy.shape != shape) {
      return absl::InvalidArgumentError(absl::StrCat("dy of shape ", dy.shape.ToString(),
                                                     " where it must have ", shape.ToString()));
    }
    const int64_t row = RowElements(like);
    const float* from = dy.as<float>();
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, like));
    std::memset(out, 0, like.elements() * sizeof(float));
    for (int64_t b = 0; b < bags; ++b, from += length_ * row) {
      const Kept kept = KeptOf(splits, b, length_, keep_last_);
      if (kept.count * row > 0)
        std::memcpy(out + kept.first * row, from, kept.count * row * sizeof(float));
    }
    return absl::OkStatus();
  }
  bool ReadsElements(int input) const override { return input != 2; }

 private:
  const int64_t length_;
  const bool keep_last_;
};

template <typename K>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return KernelPtr(new K(spec));
}

}  // namespace

void RegisterSequenceKernels(KernelTable& table) {
  table.Add("pad_sequences", Make<PadSequencesKernel>);
  table.Add("pad_sequences_grad", Make<PadSequencesGradKernel>);
}

}  // namespace mu
