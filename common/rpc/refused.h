// A mark on the error of a call: the machine of the callee has said that nobody listens at its
// address, so the process that had the address is gone. A mark of this process, set by transports;
// no text is looked at.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace mu {

inline constexpr char kRefusedUrl[] = "type.googleapis.com/muster.ConnectionRefused";

inline absl::Status AsRefused(absl::Status status) {
  status.SetPayload(kRefusedUrl, absl::Cord("1"));
  return status;
}
inline bool IsRefused(const absl::Status& status) {
  return status.GetPayload(kRefusedUrl).has_value();
}

}  // namespace mu
