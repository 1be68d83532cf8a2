// Whether what a caller asks for can be done now. Pure.
#pragma once

#include "absl/status/status.h"

namespace mu {

struct Permission {
  bool wait = false;                        // not yet: the caller asks again after the next event
  absl::Status refusal = absl::OkStatus();  // if not `wait`: why it is not done; OK: it can be

  bool granted() const { return !wait && refusal.ok(); }
};

}  // namespace mu
