#include "coordinator/cluster/completion_queue.h"

#include <utility>

#include "common/base/steady_now.h"

namespace mu {

void CompletionQueue::Add(RemoteValue value, uint64_t tag) {
  const uint64_t id = next_id_++;
  const RemoteValue& added = (pending_[id] = {std::move(value), tag}).value;
  added.WhenDone([finished = finished_, id] {
    {
      MutexLock lock(&finished->mutex);
      finished->ids.push_back(id);
    }
    finished->changed.Signal();
  });
}

std::optional<CompletionQueue::Completion> CompletionQueue::Next(absl::Duration timeout,
                                                                 bool more_follows) {
  if (!more_follows && timeout > absl::ZeroDuration() && !pending_.empty())
    pending_.begin()->second.value.NoteWait();
  uint64_t id = 0;
  {
    const absl::Time until = SteadyNow() + timeout;
    MutexLock lock(&finished_->mutex);
    for (absl::Time now = SteadyNow(); finished_->ids.empty() && now < until; now = SteadyNow())
      finished_->changed.WaitFor(&finished_->mutex, until - now);
    if (finished_->ids.empty()) return std::nullopt;
    id = finished_->ids.front();
    finished_->ids.pop_front();
  }
  return std::move(pending_.extract(id).mapped());
}

}  // namespace mu
