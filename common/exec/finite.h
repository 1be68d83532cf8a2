// Finding NaNs and infinities.
#pragma once

#include <cstdint>

#include "common/exec/kernel.h"

namespace mu {

// Whether all of x[0..n) are finite.
bool AllFinite(const float* x, int64_t n);

// True for values without floats.
bool AllFinite(const View& view);

// "NaN" or "infinity", whichever comes first in a view that is not finite.
const char* NameOfNonFinite(const View& view);

}  // namespace mu
