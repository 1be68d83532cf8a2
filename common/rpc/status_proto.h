// A status with its payloads, in a message.
#pragma once

#include "absl/status/status.h"
#include "common/base/status.h"

namespace mu {

// Bytes of the message that are no UTF-8 become '?'.
pb::StatusProto ToProto(const absl::Status& status);
absl::Status FromProto(const pb::StatusProto& proto);

}  // namespace mu
