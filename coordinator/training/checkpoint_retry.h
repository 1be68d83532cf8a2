// When a checkpoint is tried again after one that failed, or while functions wait for it. Pure: the
// time is handed in. Not thread safe.
//
// One that was ended by something that passes (a lost server) is taken again soon, not only when
// the next is due: where servers are lost often, hardly one would succeed. While functions wait for
// room that only checkpoints make (cluster/update_pause.h), they are tried whatever they end with.
// Pauses between tries grow from 1 s to 30 s, with jitter; a success begins anew.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/backoff.h"

namespace mu {

class CheckpointRetry {
 public:
  explicit CheckpointRetry(uint64_t seed) : backoff_(absl::Seconds(1), absl::Seconds(30), seed) {}

  // A checkpoint was taken, or failed.
  void Ended(absl::Time now, const absl::Status& status) {
    if (status.ok()) backoff_.Reset();
    passes_ = absl::IsUnavailable(status);
    not_before_ = now + backoff_.Next();
  }
  // `waiting`: functions wait for checkpoints.
  bool Due(absl::Time now, bool waiting) const {
    return (waiting || passes_) && now >= not_before_;
  }

 private:
  Backoff backoff_;
  bool passes_ = false;  // the reason of the last failure
  absl::Time not_before_ = absl::InfinitePast();
};

}  // namespace mu
