// Where synchronous rounds end within an epoch whose steps they take in their order, lease by
// lease: training stands still or stops there only, so that it makes no small round in the middle
// of a lease, which would move the borders of all that follow. Pure. Thread safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mu {

class RoundEnds {
 public:
  // Every step is an end.
  RoundEnds() = default;
  // `leases`: batches of each lease of the epoch, in the order in which they are handed out. A
  // round takes `replicas` of them, fewer where a lease ends, and after the epoch's step `last`,
  // where training does.
  RoundEnds(uint32_t replicas, const std::vector<uint32_t>& leases, uint64_t last)
      : replicas_(replicas) {
    uint64_t end = 0;
    for (const uint32_t batches : leases) ends_.push_back(std::min(end += batches, last));
  }

  // Steps of the round that ends when so many steps of the epoch have been taken; 0: none ends
  // there. At the epoch's beginning, and behind `last`, it is 1.
  uint64_t Ended(uint64_t steps) const {
    const auto lease = std::lower_bound(ends_.begin(), ends_.end(), steps);
    if (steps == 0 || lease == ends_.end()) return 1;
    const uint64_t begin = lease == ends_.begin() ? 0 : *(lease - 1);
    const uint64_t over = (steps - begin) % replicas_;
    if (over == 0) return replicas_;
    return steps == *lease ? over : 0;
  }

 private:
  uint32_t replicas_ = 1;
  std::vector<uint64_t> ends_;  // of leases, in steps of the epoch
};

}  // namespace mu
