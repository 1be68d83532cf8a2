// Calls in the order in which they finish, whatever order they were scheduled in: who waits here is
// not held up by the slowest worker. Used by one thread; calls may finish on any.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "coordinator/cluster/remote_value.h"

namespace mu {

class CompletionQueue {
 public:
  struct Completion {
    RemoteValue value;  // done
    uint64_t tag = 0;
  };
  // `tag` comes back with the call.
  void Add(RemoteValue value, uint64_t tag = 0);
  // Waits at most so long for a call to finish. Each comes out once. `more_follows`: the caller
  // will schedule more before it waits for all of these, so a synchronous round may wait for that.
  std::optional<Completion> Next(absl::Duration timeout, bool more_follows = false);
  // Calls that have not come out of Next yet.
  size_t size() const { return pending_.size(); }
  bool empty() const { return pending_.empty(); }

 private:
  // A call may finish after the queue is gone.
  struct Finished {
    Mutex mutex;
    CondVar changed;
    std::deque<uint64_t> ids ABSL_GUARDED_BY(mutex);
  };

  const std::shared_ptr<Finished> finished_ = std::make_shared<Finished>();
  std::map<uint64_t, Completion> pending_;
  uint64_t next_id_ = 0;
};

}  // namespace mu
