// The end that a worker gives to a run whose results nobody seems to want: it has not been called
// for as long as its coordinator's patience. A coordinator that reads it was there after all, and
// stood still; the worker is as well as before.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace mu {

inline constexpr char kCallerGoneUrl[] = "type.googleapis.com/muster.CallerGone";

inline absl::Status CallerGoneError() {
  absl::Status status = absl::CancelledError("the caller of Run is gone");
  status.SetPayload(kCallerGoneUrl, absl::Cord());
  return status;
}
inline bool IsCallerGone(const absl::Status& status) {
  return status.GetPayload(kCallerGoneUrl).has_value();
}

}  // namespace mu
