// Which stream of the coordinator a worker serves, and on which of its connections: always the
// newest. What is older comes late, from before something that the coordinator has done since. A
// pure state machine.
#pragma once

#include <cstdint>
#include <tuple>

#include "absl/status/statusor.h"

namespace mu {

class FeedGate {
 public:
  struct Connection {
    uint64_t stream = 0;      // grows with the streams of an epoch
    uint64_t connection = 0;  // grows with the connections of a stream
  };

  // Of a coordinator of this epoch, which RequestGate has admitted. True: a new stream. ABORTED: a
  // newer connection of the same stream has come before. FAILED_PRECONDITION (ERROR_STALE): a newer
  // stream has.
  absl::StatusOr<bool> Open(uint64_t epoch, const Connection& connection);

 private:
  uint64_t epoch_ = 0;
  Connection newest_;
};

}  // namespace mu
