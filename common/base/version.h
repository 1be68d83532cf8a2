// Versions, for --version and for who may talk to whom (docs/compatibility.md).
#pragma once

#include <cstdint>
#include <string>

namespace mu {

std::string Version();  // of the release, "0.2.0"

// Of what processes say to each other. Grows when a process of before would misunderstand, so also
// with a new kind of update. A coordinator understands its own and the older ones from the one
// below on (0: from before there were versions). 2: runs of functions go through a stream to each
// worker. 3: servers assign new values, compute products and keep views of checkpoints. 4: mean,
// stddev and boundaries of columns are doubles. 5: servers move averages (moving_part).
inline constexpr uint32_t kProtocol = 5;
inline constexpr uint32_t kOldestProtocol = 5;

}  // namespace mu
