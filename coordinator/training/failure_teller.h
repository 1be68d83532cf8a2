// Which failures of daemons a user has not been told of, and which are over since, however many
// there have been: the list of them keeps the oldest and the newest (core/failure_list.h). Pure;
// not synchronised.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "coordinator/core/failure_list.h"

namespace mu {

class FailureTeller {
 public:
  using OnFailure = std::function<void(const MemberFailure&)>;

  // Calls `tell` with each of `listed`, oldest first, that no call before had. Those that came and
  // left the list between two calls are not told. Calls `recovered` with each that was told when
  // work goes on. Both may be null.
  void Tell(const std::vector<MemberFailure>& listed, const OnFailure& tell,
            const OnFailure& recovered = nullptr) {
    for (const MemberFailure& failure : listed) {
      const bool is_over = failure.recovered_seconds >= 0;
      bool was_told = lasting_.contains(failure.number);
      if (failure.number >= next_) {
        // First: `tell` may ask again.
        next_ = failure.number + 1;
        if (!is_over) lasting_.insert(failure.number);
        was_told = true;
        if (tell) tell(failure);
      }
      if (!was_told || !is_over) continue;
      lasting_.erase(failure.number);  // first
      if (recovered) recovered(failure);
    }
    // Those that left the list.
    std::erase_if(lasting_, [&](uint64_t number) {
      const auto at = std::lower_bound(
          listed.begin(), listed.end(), number,
          [](const MemberFailure& failure, uint64_t than) { return failure.number < than; });
      return at != listed.end() && at->number != number;
    });
  }

 private:
  uint64_t next_ = 0;           // number of the oldest that was not told
  std::set<uint64_t> lasting_;  // that were told, and were not over then
};

}  // namespace mu
