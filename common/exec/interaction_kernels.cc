// Products of all pairs of a record's vectors, each pair once, and their gradient (the interaction
// of DLRM: Naumov et al., "Deep Learning Recommendation Model for Personalization and
// Recommendation Systems", 2019).
#include "common/exec/kernel_table.h"
#include "common/exec/simd.h"
#include "common/exec/small_gemm.h"

namespace mu {
namespace {

int64_t Pairs(int64_t n) { return n * (n - 1) / 2; }

class InteractionKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const int64_t batch = x.shape[0], n = x.shape[1], dim = x.shape[2];
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, Shape({batch, Pairs(n)})));
    LowerTriangles(batch, n, dim, x.as<float>(), out, context.scratch().buffers[0]);
    return absl::OkStatus();
  }
};

// dx[i] = sum over j of dy[pair(i, j)] * x[j]: one product with a symmetric matrix of zero
// diagonal.
class InteractionGradKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& dy = context.input(0);
    const View& x = context.input(1);
    const int64_t batch = x.shape[0], n = x.shape[1], dim = x.shape[2];
    if (dy.shape != Shape({batch, Pairs(n)})) {
      return absl::InvalidArgumentError(
          absl::StrCat("dy of shape ", dy.shape.ToString(), " for pairs of ", x.shape.ToString()));
    }
    const float* pairs = dy.as<float>();
    const float* vectors = x.as<float>();
    MU_ASSIGN_OR_RETURN(float* out, context.Output<float>(0, x.shape));
    if (x.elements() == 0) return absl::OkStatus();
    const Shape square({n * n + 8});
    float* const matrix =
        static_cast<float*>(ReserveFor(square, kFloat32, context.scratch().buffers[0]));
    if (matrix == nullptr) return NoMemory(square);
    for (int64_t record = 0; record < batch; ++record) {
      Mirror(pairs, n, matrix);
      SmallGemm(false, false, 1, n, dim, n, matrix, vectors, out, context.scratch().buffers[1]);
      pairs += Pairs(n);
      vectors += n * dim;
      out += n * dim;
    }
    return absl::OkStatus();
  }

 private:
  // Fills both triangles, row by row. What a row's last vector writes past its end is overwritten
  // by what comes after it.
  static void Mirror(const float* pairs, int64_t n, float* matrix) {
    for (int64_t i = 0; i < n; ++i) {
      float* const row = matrix + i * n;
      for (int64_t j = 0; j < i; j += 8) {
        _mm256_storeu_ps(row + j, i - j >= 8 ? _mm256_loadu_ps(pairs + j)
                                             : _mm256_maskload_ps(pairs + j, LaneMask(i - j)));
      }
      row[i] = 0;
      for (int64_t j = 0; j < i; ++j) matrix[j * n + i] = pairs[j];
      pairs += i;
    }
  }
};

template <typename K>
absl::StatusOr<KernelPtr> Make(const NodeSpec&) {
  return KernelPtr(new K());
}

}  // namespace

void RegisterInteractionKernels(KernelTable& table) {
  table.Add("pairwise_interactions", Make<InteractionKernel>);
  table.Add("pairwise_interactions_grad", Make<InteractionGradKernel>);
}

}  // namespace mu
