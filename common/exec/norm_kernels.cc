// Layer and RMS normalisation over the last axis, and their gradients.
//
// With x' = (x - mean) * r, r = 1 / sqrt(variance + epsilon), y = x' * gamma + beta and
// g = dy * gamma (Ba, Kiros, Hinton, "Layer Normalization", 2016):
//   dx = r * (g - mean(g) - x' * mean(g * x')),  dgamma = sum of dy * x',  dbeta = sum of dy
// RMS normalisation (Zhang, Sennrich, "Root Mean Square Layer Normalization", 2019) is the same
// without mean and beta.
#include <cmath>
#include <cstring>

#include "common/exec/kernel_table.h"
#include "common/exec/rows.h"
#include "common/exec/simd.h"

namespace mu {
namespace {

struct Moments {
  float mean = 0;  // 0 if rows are not centred
  float r = 0;     // what (x - mean) is multiplied by
};

template <bool centred>
Moments MomentsOf(const float* x, int64_t n, float epsilon) {
  Moments moments;
  const float size = static_cast<float>(n);
  if (centred) moments.mean = Sum(x, n) / size;
  const float mean = moments.mean;
  const float squares = SumOf(n, [x, mean](int64_t i, __m256i mask) {
    const __m256 d = _mm256_sub_ps(_mm256_maskload_ps(x + i, mask), _mm256_set1_ps(mean));
    return _mm256_and_ps(_mm256_mul_ps(d, d), _mm256_castsi256_ps(mask));
  });
  moments.r = 1.0f / std::sqrt(squares / size + epsilon);
  return moments;
}

absl::Status CheckScale(const View& scale, int64_t width, const char* what) {
  if (scale.elements() == width) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " of shape ", scale.shape.ToString(),
                                                 " for rows of ", width, " elements"));
}

template <bool centred>
class NormKernel : public Kernel {
 public:
  explicit NormKernel(float epsilon) : epsilon_(epsilon) {}
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const Rows rows = RowsOf(x.shape);
    const int64_t n = rows.width;
    MU_RETURN_IF_ERROR(CheckScale(context.input(1), n, "gamma"));
    const float* const gamma = context.in<float>(1);
    const float* beta = nullptr;
    if constexpr (centred) {
      MU_RETURN_IF_ERROR(CheckScale(context.input(2), n, "beta"));
      beta = context.in<float>(2);
    }
    const float* in = x.as<float>();
    MU_ASSIGN_OR_RETURN(float* out, context.Output<float>(0, x.shape));
    if (x.elements() == 0) return absl::OkStatus();  // however many empty rows there are
    for (int64_t row = 0; row < rows.count; ++row, in += n, out += n) {
      const Moments moments = MomentsOf<centred>(in, n, epsilon_);
      MU_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) {
        const float y = (in[i] - moments.mean) * moments.r * gamma[i];
        out[i] = centred ? y + beta[i] : y;
      }
    }
    return absl::OkStatus();
  }

 private:
  const float epsilon_;
};

// (dy, x, gamma) -> dx, dgamma, and dbeta if rows are centred.
template <bool centred>
class NormGradKernel : public Kernel {
 public:
  explicit NormGradKernel(float epsilon) : epsilon_(epsilon) {}
  absl::Status Run(KernelContext& context) const override {
    const View& dy = context.input(0);
    const View& x = context.input(1);
    const Shape& like = context.input(2).shape;
    const Rows rows = RowsOf(x.shape);
    const int64_t n = rows.width;
    if (dy.shape != x.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("dy of shape ", dy.shape.ToString(), " but x of ", x.shape.ToString()));
    }
    MU_RETURN_IF_ERROR(CheckScale(context.input(2), n, "gamma"));
    const float* const gamma = context.in<float>(2);
    const float* in = x.as<float>();
    const float* from = dy.as<float>();
    MU_ASSIGN_OR_RETURN(float* dx, context.Output<float>(0, x.shape));
    MU_ASSIGN_OR_RETURN(float* const dgamma, context.Output<float>(1, like));
    std::memset(dgamma, 0, n * sizeof(float));
    float* dbeta = nullptr;
    if constexpr (centred) {
      MU_ASSIGN_OR_RETURN(dbeta, context.Output<float>(2, like));
      std::memset(dbeta, 0, n * sizeof(float));
    }
    if (x.elements() == 0) return absl::OkStatus();
    for (int64_t row = 0; row < rows.count; ++row, in += n, from += n, dx += n) {
      Row(in, from, gamma, n, dx, dgamma, dbeta);
    }
    return absl::OkStatus();
  }

 private:
  void Row(const float* x, const float* dy, const float* gamma, int64_t n, float* __restrict dx,
           float* __restrict dgamma, float* __restrict dbeta) const {
    const Moments moments = MomentsOf<centred>(x, n, epsilon_);
    const float mean = moments.mean, r = moments.r;
    const float size = static_cast<float>(n);
    const float mean_g = centred ? Dot(dy, gamma, n) / size : 0.0f;
    for (int64_t i = 0; i < n; ++i) {
      const float normal = (x[i] - mean) * r;
      dx[i] = normal;
      dgamma[i] += dy[i] * normal;
      if (centred) dbeta[i] += dy[i];
    }
    const float* const normal = dx;
    const float along = SumOf(n,
                              [=](int64_t i, __m256i mask) {
                                const __m256 g = _mm256_mul_ps(_mm256_maskload_ps(dy + i, mask),
                                                               _mm256_maskload_ps(gamma + i, mask));
                                return _mm256_mul_ps(g, _mm256_maskload_ps(normal + i, mask));
                              }) /
                        size;
    for (int64_t i = 0; i < n; ++i) dx[i] = r * (dy[i] * gamma[i] - mean_g - dx[i] * along);
  }

  const float epsilon_;
};

template <typename K>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return KernelPtr(new K(spec.attrs.Float("epsilon")));
}

}  // namespace

void RegisterNormKernels(KernelTable& table) {
  table.Add("layer_norm", Make<NormKernel<true>>);
  table.Add("layer_norm_grad", Make<NormGradKernel<true>>);
  table.Add("rms_norm", Make<NormKernel<false>>);
  table.Add("rms_norm_grad", Make<NormGradKernel<false>>);
}

}  // namespace mu
