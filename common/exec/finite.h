// Finding NaNs and infinities.
#pragma once

#include "common/exec/kernel.h"

namespace mu {

// True for values without floats.
bool AllFinite(const View& view);

// "NaN" or "infinity", whichever comes first in a view that is not finite.
const char* NameOfNonFinite(const View& view);

}  // namespace mu
