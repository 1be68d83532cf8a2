// Whether this coordinator and a daemon that registers understand each other.
#pragma once

#include "absl/status/status.h"
#include "proto/coordinator.pb.h"

namespace mu {

// FAILED_PRECONDITION: the daemon's protocol is newer than this coordinator's or older than
// kOldestProtocol (common/base/version.h). The message names the daemon, both versions and what to
// do.
absl::Status CheckProtocol(const muster::RegisterRequest& request);

}  // namespace mu
