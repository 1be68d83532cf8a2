#pragma once

#include <cstddef>

namespace mu {

// True if none of the values is NaN or infinite.
bool AllFinite(const float* values, size_t n);

}  // namespace mu
