// How a call to a daemon failed: its status, and what our services say of it in typed details.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "proto/error.pb.h"
#include "proto/input_fault.pb.h"

namespace mu {

struct CallError {
  absl::Status status;  // OK: it did not fail
  pb::ErrorKind kind = pb::ERROR_UNSPECIFIED;
  pb::Role role = pb::ROLE_UNSPECIFIED;  // whose fault it is
  uint32_t index = 0;                    // which of that role
  CoordinatorEpoch epoch;                // that the daemon has heard of
  bool applied_full = false;             // a server has no room to remember a push
  bool caller_gone = false;              // a worker has given a run up, see caller_gone.h
  pb::InputFault input;                  // what a worker cannot read; NONE

  static CallError Of(absl::Status status);
  bool ok() const { return status.ok(); }
  // A worker's own error, of no kind that says more: its process answers, but cannot do what it was
  // asked to.
  bool answered() const {
    return kind == pb::ERROR_MACHINE && !absl::IsUnavailable(status) &&
           !absl::IsDeadlineExceeded(status) && !absl::IsCancelled(status);
  }
  // Another try may succeed.
  bool passing() const { return kind == pb::ERROR_MACHINE || kind == pb::ERROR_STALE; }
};

}  // namespace mu
