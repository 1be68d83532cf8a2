// Whether the process that had an address is gone.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace mu {

// True if the machine at "host:port" refuses connections, because no process listens there. False
// if one listens, if the machine says nothing within `timeout`, and if there is no such machine.
// Blocks; for a name, also until it is resolved.
bool NobodyListens(const std::string& address, absl::Duration timeout);

}  // namespace mu
