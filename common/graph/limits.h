// Limits that keep one job's mistake from using up a process.
#pragma once

#include <cstddef>

namespace mu {

// Functions with different graphs that a job may define, and a worker takes. Each is kept by every
// worker for as long as it lives.
inline constexpr size_t kMostFunctions = 10'000;

}  // namespace mu
