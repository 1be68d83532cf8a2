// Loops without a coordinator: they keep things under way at each address, as many as a coordinator
// would, and start the next one when one has ended. All go through one stream to each address.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/scale/measured.h"

namespace mu::scale {

struct DirectOptions {
  int in_flight = 2;
  absl::Duration warm_up;
  absl::Duration window;
};

// Waits for the warm-up and the window. How much of what `ended` counts came in the window.
Measured MeasureEnds(const DirectOptions& options, const std::atomic<uint64_t>& ended);

// Calls of /bench/Echo.
absl::StatusOr<Measured> DriveEcho(const DirectOptions& options,
                                   const std::vector<std::string>& addresses);

}  // namespace mu::scale
