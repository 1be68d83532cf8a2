// Arithmetic on denormal floats (below 1.2e-38) costs the processor some 150 cycles each. While a
// loss is extreme (a sigmoid that saturates in the first steps), most gradients are that small, and
// a step takes twenty times its time. They carry nothing: within the scope they are 0, as operands
// and as results. For this thread only.
#pragma once

#include <immintrin.h>

namespace mu {

class ScopedFlushDenormals {
 public:
  ScopedFlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushToZero); }
  ~ScopedFlushDenormals() { _mm_setcsr(before_); }
  ScopedFlushDenormals(const ScopedFlushDenormals&) = delete;
  ScopedFlushDenormals& operator=(const ScopedFlushDenormals&) = delete;

 private:
  static constexpr unsigned kFlushToZero = 0x8040;  // of results and of operands

  const unsigned before_;
};

}  // namespace mu
