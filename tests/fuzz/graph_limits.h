// Whether a function can be run without taking much memory or time. A user's function may; that is
// no error.
#pragma once

#include <algorithm>
#include <cmath>

#include "common/graph/verifier.h"

namespace mu::fuzzing {

// `function` has been verified. Sizes that are not known until run time count as `unknown`.
inline bool IsSmall(const muster::FunctionProto& function, int64_t unknown) {
  constexpr double kMostElements = 1 << 18;
  const auto specs = InferSpecs(function);
  if (!specs.ok()) return true;  // nothing will run
  double elements = 0;
  for (const auto& outputs : *specs) {
    for (const TensorSpec& spec : outputs) {
      double size = 1;
      for (const int64_t dim : spec.shape.dims())
        size *= static_cast<double>(dim < 0 ? unknown : dim);
      elements += size;
    }
  }
  return elements <= kMostElements;
}

}  // namespace mu::fuzzing
