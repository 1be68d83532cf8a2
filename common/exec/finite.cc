#include "common/exec/finite.h"

#include <cmath>
#include <cstddef>

#include "common/base/all_finite.h"

namespace mu {

bool AllFinite(const View& view) {
  return view.dtype != kFloat32 ||
         AllFinite(view.as<float>(), static_cast<size_t>(view.elements()));
}

const char* NameOfNonFinite(const View& view) {
  const int64_t n = view.elements();
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(view.as<float>()[i]))
      return std::isnan(view.as<float>()[i]) ? "NaN" : "infinity";
  }
  return "NaN";
}

}  // namespace mu
