// How long a server may serve: until its lease runs out, which heartbeats renew.
// Times are the caller's clock's, in nanoseconds. Pure and thread safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/time/time.h"

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
    const int64_t end = sent_ns + absl::ToInt64Nanoseconds(lease);
    int64_t current = end_ns_.load(std::memory_order_relaxed);
    while (current < end && !end_ns_.compare_exchange_weak(current, end)) {
    }
  }
  bool Holds(int64_t now_ns) const { return now_ns < end_ns_.load(); }

 private:
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> end_ns_;
};

}  // namespace mu
