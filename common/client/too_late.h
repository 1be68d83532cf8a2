// The mark of a server's refusal of a push because its gradients are later than the function
// allows: the step is to run again, with newer values. The server does not remember the refusal.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace mu {

inline constexpr char kTooLateUrl[] = "type.googleapis.com/muster.TooLate";

inline absl::Status WithTooLate(absl::Status status) {
  status.SetPayload(kTooLateUrl, absl::Cord());
  return status;
}
inline bool IsTooLate(const absl::Status& status) {
  return status.GetPayload(kTooLateUrl).has_value();
}

}  // namespace mu
