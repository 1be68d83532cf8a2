// Decimal texts of numbers, for people and for job files.
#pragma once

#include <string>

namespace mu {

// As few digits as say `value` up to `error`, but not fewer than 6; with an error of 0 exactly that
// double. A whole number below 2^53 is written in full: 1700000000, not 1.7e+09.
std::string NumberText(double value, double error = 0);

}  // namespace mu
