// Repetition along axes, and its gradient.
#include <cstring>
#include <vector>

#include "common/exec/broadcast.h"
#include "common/exec/kernel_table.h"
#include "common/exec/simd.h"

namespace mu {
namespace {

std::vector<int64_t> MultiplesOf(const NodeSpec& spec) {
  const auto multiples = spec.attrs.Ints("multiples");
  return {multiples.begin(), multiples.end()};
}

// RESOURCE_EXHAUSTED for what cannot fit into memory; the sizes' product would overflow.
absl::StatusOr<Shape> Tiled(const Shape& x, const std::vector<int64_t>& multiples) {
  constexpr int64_t kMost = int64_t{1} << 44;
  Shape shape = x;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != 0 && multiples[i] > kMost / shape[i]) return NoMemory(x);
    shape[i] *= multiples[i];
  }
  return shape;
}

class TileKernel : public Kernel {
 public:
  explicit TileKernel(const NodeSpec& spec)
      : multiples_(MultiplesOf(spec)),
        element_(static_cast<int64_t>(ElementSize(spec.inputs[0].dtype))) {}
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    MU_ASSIGN_OR_RETURN(const Shape shape, Tiled(x.shape, multiples_));
    MU_ASSIGN_OR_RETURN(char* const out, context.Output<char>(0, shape));
    const char* from = x.as<char>();
    if (x.elements() > 0) Fill(x.shape, 0, &from, out);
    return absl::OkStatus();
  }

 private:
  // Writes what is below an entry of the axes before `axis`; returns its end.
  char* Fill(const Shape& shape, int axis, const char** from, char* to) const {
    if (axis == shape.rank()) {
      std::memcpy(to, *from, element_);
      *from += element_;
      return to + element_;
    }
    char* const begin = to;
    if (axis == shape.rank() - 1) {
      std::memcpy(to, *from, shape[axis] * element_);
      *from += shape[axis] * element_;
      to += shape[axis] * element_;
    } else {
      for (int64_t i = 0; i < shape[axis]; ++i) to = Fill(shape, axis + 1, from, to);
    }
    const int64_t block = to - begin;
    for (int64_t m = 1; m < multiples_[axis]; ++m, to += block) std::memcpy(to, begin, block);
    return to;
  }

  const std::vector<int64_t> multiples_;
  const int64_t element_;
};

class TileGradKernel : public Kernel {
 public:
  explicit TileGradKernel(const NodeSpec& spec) : multiples_(MultiplesOf(spec)) {}
  absl::Status Run(KernelContext& context) const override {
    const View& dy = context.input(0);
    const Shape& like = context.input(1).shape;
    MU_ASSIGN_OR_RETURN(const Shape tiled, Tiled(like, multiples_));
    if (dy.shape != tiled) {
      return absl::InvalidArgumentError(absl::StrCat("dy of shape ", dy.shape.ToString(),
                                                     " is no repetition of ", like.ToString()));
    }
    const float* from = dy.as<float>();
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, like));
    std::memset(out, 0, like.elements() * sizeof(float));
    if (like.elements() > 0) Collect(like, 0, &from, out);
    return absl::OkStatus();
  }
  bool ReadsElements(int input) const override { return input == 0; }

 private:
  // Adds what dy has next for the axes from `axis` on to `to`; returns the end of what was added
  // to.
  float* Collect(const Shape& like, int axis, const float** from, float* to) const {
    if (axis == like.rank()) {
      *to += *(*from)++;
      return to + 1;
    }
    float* end = to;
    for (int64_t m = 0; m < multiples_[axis]; ++m) {
      end = to;
      if (axis == like.rank() - 1) {
        AddTo(to, *from, like[axis]);
        *from += like[axis];
        end += like[axis];
      } else {
        for (int64_t i = 0; i < like[axis]; ++i) end = Collect(like, axis + 1, from, end);
      }
    }
    return end;
  }

  const std::vector<int64_t> multiples_;
};

template <typename K>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return KernelPtr(new K(spec));
}

}  // namespace

void RegisterTileKernels(KernelTable& table) {
  table.Add("tile", Make<TileKernel>);
  table.Add("tile_grad", Make<TileGradKernel>);
}

}  // namespace mu
