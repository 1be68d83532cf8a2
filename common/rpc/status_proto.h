// A status with its payloads, in a message.
#pragma once

#include "absl/status/status.h"
#include "common/base/status.h"

namespace mu {

pb::StatusProto ToProto(const absl::Status& status);
absl::Status FromProto(const pb::StatusProto& proto);

}  // namespace mu
