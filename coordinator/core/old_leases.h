// Leases of servers that lost their place while their processes may live on: each may serve until
// its lease ends. Pure; not synchronised.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "absl/time/time.h"

namespace mu {

class OldLeases {
 public:
  void Add(int64_t pid, absl::Time until) {
    absl::Time& end = until_.try_emplace(pid, absl::InfinitePast()).first->second;
    end = std::max(end, until);
  }
  // The process is known to be dead.
  void Ended(int64_t pid) { until_.erase(pid); }
  // Nobody who lost its place serves after this time.
  absl::Time last() const {
    absl::Time last = absl::InfinitePast();
    for (const auto& [pid, until] : until_) last = std::max(last, until);
    return last;
  }
  void Forget(absl::Time now) {
    std::erase_if(until_, [now](const auto& lease) { return lease.second <= now; });
  }

 private:
  std::map<int64_t, absl::Time> until_;
};

}  // namespace mu
