// The arithmetic of an optimizer, written once for eight values at a time and for the rest one by
// one: the same single IEEE operations in the same order, nothing fused or approximated.
//
// Only for the .cc files of rules. AVX2 is there: the build is for x86-64-v3.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "psserver/optimizer/update_rule.h"

namespace mu {

struct Eight {
  __m256 v;
  Eight() : v(_mm256_setzero_ps()) {}
  explicit Eight(__m256 lanes) : v(lanes) {}
  Eight(float value) : v(_mm256_set1_ps(value)) {}  // NOLINT(google-explicit-constructor)

  friend Eight operator+(Eight a, Eight b) { return Eight(_mm256_add_ps(a.v, b.v)); }
  friend Eight operator-(Eight a, Eight b) { return Eight(_mm256_sub_ps(a.v, b.v)); }
  friend Eight operator*(Eight a, Eight b) { return Eight(_mm256_mul_ps(a.v, b.v)); }
  friend Eight operator/(Eight a, Eight b) { return Eight(_mm256_div_ps(a.v, b.v)); }
};

inline Eight Sqrt(Eight x) { return Eight(_mm256_sqrt_ps(x.v)); }
inline float Sqrt(float x) { return std::sqrt(x); }
// Of numbers: no operand is NaN.
inline Eight Max(Eight a, Eight b) { return Eight(_mm256_max_ps(a.v, b.v)); }
inline float Max(float a, float b) { return std::max(a, b); }
inline Eight Min(Eight a, Eight b) { return Eight(_mm256_min_ps(a.v, b.v)); }
inline float Min(float a, float b) { return std::min(a, b); }

template <typename V>
V LoadAs(const float* from);
template <>
inline Eight LoadAs<Eight>(const float* from) {
  return Eight(_mm256_loadu_ps(from));
}
template <>
inline float LoadAs<float>(const float* from) {
  return *from;
}
inline void StoreTo(float* to, Eight value) { _mm256_storeu_ps(to, value.v); }
inline void StoreTo(float* to, float value) { *to = value; }

// At [i] (and the seven behind it), with kSlots slots of one number a value.
template <typename V, size_t kSlots, typename Change>
inline void ChangeAt(size_t i, float* value, float* const* slots, const float* gradient,
                     const Change& change) {
  V x = LoadAs<V>(value + i);
  V s[kSlots == 0 ? 1 : kSlots];
  for (size_t k = 0; k < kSlots; ++k) s[k] = LoadAs<V>(slots[k] + i);
  change(&x, s, LoadAs<V>(gradient + i));
  for (size_t k = 0; k < kSlots; ++k) StoreTo(slots[k] + i, s[k]);
  StoreTo(value + i, x);
}

// Calls change(&value, slots, gradient) for each of n values, as Eight or as float.
template <size_t kSlots, typename Change>
inline void ForEachValue(float* value, Slots slots, const float* gradient, size_t n,
                         const Change& change) {
  float* at[kSlots == 0 ? 1 : kSlots];
  for (size_t k = 0; k < kSlots; ++k) at[k] = slots[k];
  size_t i = 0;
  for (; i + 8 <= n; i += 8) ChangeAt<Eight, kSlots>(i, value, at, gradient, change);
  for (; i < n; ++i) ChangeAt<float, kSlots>(i, value, at, gradient, change);
}

// In an order that depends on n alone.
inline float SumOfSquares(const float* x, size_t n) {
  Eight sum;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const Eight some = LoadAs<Eight>(x + i);
    sum = sum + some * some;
  }
  float lanes[8];
  StoreTo(lanes, sum);
  float total = 0;
  for (const float lane : lanes) total += lane;
  for (; i < n; ++i) total += x[i] * x[i];
  return total;
}

}  // namespace mu
