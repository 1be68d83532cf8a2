// What the messages of the stream between coordinator and worker are about, for faults by kind.
#pragma once

#include <string>
#include <vector>

#include "common/rpc/buffer.h"

namespace mu {

// All that KindsOf may name.
const std::vector<std::string>& FeedKinds();

// Of one message, "Run" and "Lease", say; it may be of several kinds. Empty: it does not parse.
// `request`: of the coordinator.
std::vector<std::string> KindsOf(const Buffer& message, bool request);

}  // namespace mu
