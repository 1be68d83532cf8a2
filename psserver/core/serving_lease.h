// How long a server may serve: until its lease runs out, which heartbeats renew.
// Times are the caller's clock's, in nanoseconds. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/time/time.h"
#include "psserver/core/protections.h"

namespace mu {

class ServingLease {
 public:
  // `needed`: it serves only after the first Renew. Otherwise (no coordinator: tests, tools) it
  // serves always.
  explicit ServingLease(bool needed)
      : end_ns_(needed ? std::numeric_limits<int64_t>::min() : kForever) {}

  // The coordinator granted `lease` from when the heartbeat was sent. A lease is never made
  // shorter.
  void Renew(int64_t sent_ns, absl::Duration lease) {
    end_ns_ = std::max(end_ns_, sent_ns + absl::ToInt64Nanoseconds(lease));
  }
  bool Holds(int64_t now_ns) const { return now_ns < end_ns_ || MU_SERVER_BROKEN(leases); }

 private:
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
  int64_t end_ns_;
};

}  // namespace mu
