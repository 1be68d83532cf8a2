// Which failures of daemons a user has not been told of, however many there have been: the list of
// them keeps the oldest and the newest (core/failure_list.h). Pure; not synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "coordinator/core/failure_list.h"

namespace mu {

class FailureTeller {
 public:
  // Calls `tell` with each of `listed`, oldest first, that no call before had. Those that came and
  // left the list between two calls are not told.
  void Tell(const std::vector<MemberFailure>& listed,
            const std::function<void(const MemberFailure&)>& tell) {
    for (const MemberFailure& failure : listed) {
      if (failure.number < next_) continue;
      next_ = failure.number + 1;  // first: `tell` may ask again
      tell(failure);
    }
  }

 private:
  uint64_t next_ = 0;  // number of the oldest that was not told
};

}  // namespace mu
