#include "psserver/optimizer/optimizer.h"

#include <immintrin.h>

#include <cmath>
#include <cstring>

namespace mu {
namespace {

constexpr size_t kLanes = 8;
constexpr float kDefaultEpsilon = 1e-10f;

void Sgd(float* value, const float* gradient, size_t n, float rate) {
  size_t i = 0;
  const __m256 rates = _mm256_set1_ps(rate);
  for (; i + kLanes <= n; i += kLanes) {
    const __m256 step = _mm256_mul_ps(rates, _mm256_loadu_ps(gradient + i));
    _mm256_storeu_ps(value + i, _mm256_sub_ps(_mm256_loadu_ps(value + i), step));
  }
  for (; i < n; ++i) value[i] -= rate * gradient[i];
}

// The lanes compute what the loop of the rest does, operation by operation: nothing is fused or
// approximated.
void Adagrad(float* value, float* accumulator, const float* gradient, size_t n, float rate,
             float epsilon) {
  size_t i = 0;
  const __m256 rates = _mm256_set1_ps(rate);
  const __m256 epsilons = _mm256_set1_ps(epsilon);
  for (; i + kLanes <= n; i += kLanes) {
    const __m256 g = _mm256_loadu_ps(gradient + i);
    const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(accumulator + i), _mm256_mul_ps(g, g));
    _mm256_storeu_ps(accumulator + i, sum);
    const __m256 step =
        _mm256_div_ps(_mm256_mul_ps(rates, g), _mm256_add_ps(_mm256_sqrt_ps(sum), epsilons));
    _mm256_storeu_ps(value + i, _mm256_sub_ps(_mm256_loadu_ps(value + i), step));
  }
  for (; i < n; ++i) {
    const float g = gradient[i];
    const float sum = accumulator[i] + g * g;
    accumulator[i] = sum;
    value[i] -= rate * g / (std::sqrt(sum) + epsilon);
  }
}

}  // namespace

RowOptimizer::RowOptimizer(const muster::OptimizerProto& proto) {
  switch (proto.kind_case()) {
    case muster::OptimizerProto::kSgd:
      kind_ = Kind::kSgd;
      learning_rate_ = proto.sgd().learning_rate();
      break;
    case muster::OptimizerProto::kAdagrad:
      kind_ = Kind::kAdagrad;
      learning_rate_ = proto.adagrad().learning_rate();
      epsilon_ = proto.adagrad().epsilon() == 0 ? kDefaultEpsilon : proto.adagrad().epsilon();
      initial_accumulator_ = proto.adagrad().initial_accumulator();
      break;
    case muster::OptimizerProto::KIND_NOT_SET:
      break;
  }
}

void RowOptimizer::Apply(float* value, float* slots, const float* gradient, size_t n,
                         float rate_scale) const {
  switch (kind_) {
    case Kind::kSgd:
      Sgd(value, gradient, n, learning_rate_ * rate_scale);
      return;
    case Kind::kAdagrad:
      Adagrad(value, slots, gradient, n, learning_rate_ * rate_scale, epsilon_);
      return;
    case Kind::kNone:
      return;
  }
}

bool AllFinite(const float* values, size_t n) {
  // NaN and infinity have all bits of the exponent set.
  constexpr uint32_t kExponent = 0x7F800000;
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(kExponent));
  __m256i bad = _mm256_setzero_si256();
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
    bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(_mm256_and_si256(bits, mask), mask));
  }
  bool finite = _mm256_testz_si256(bad, bad) != 0;
  for (; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    finite &= (bits & kExponent) != kExponent;
  }
  return finite;
}

}  // namespace mu
