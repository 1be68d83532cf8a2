// Limits that keep one job's mistake from using up a process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mu {

// Functions with different graphs that a job may define, and a worker takes. Each is kept by every
// worker for as long as it lives.
inline constexpr size_t kMostFunctions = 10'000;

// Fields of a libffm dataset; each is a list in every batch.
inline constexpr int64_t kMostLibffmFields = 10'000;

}  // namespace mu
