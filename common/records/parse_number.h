// Decimal numbers in text.
#pragma once

#include "absl/strings/string_view.h"

namespace mu {

// The nearest float, or double, of a decimal number ("-12", "+3.5", "1e-3", ".5"); false for
// anything else, also "nan" and "inf" and what is too large for a float. What is too small is 0.
bool ParseNumber(absl::string_view text, float* value);
bool ParseNumber(absl::string_view text, double* value);

}  // namespace mu
