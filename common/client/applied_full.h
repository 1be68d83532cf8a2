// The mark of a server's refusal of a push because its memory of applied pushes is full: the push
// is to be repeated when checkpoints cover finished functions and the low-water mark has risen.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace mu {

inline constexpr char kAppliedFullUrl[] = "type.googleapis.com/muster.AppliedFull";

inline absl::Status WithAppliedFull(absl::Status status) {
  status.SetPayload(kAppliedFullUrl, absl::Cord());
  return status;
}
inline bool IsAppliedFull(const absl::Status& status) {
  return status.GetPayload(kAppliedFullUrl).has_value();
}

}  // namespace mu
