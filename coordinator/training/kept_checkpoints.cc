#include "coordinator/training/kept_checkpoints.h"

#include <utility>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/kept_checkpoint.h"

namespace mu {

absl::Status KeptCheckpoints::Need(std::set<std::string> names, TrainingHistory::Best best) {
  MutexLock lock(&mutex_);
  known_ = true;
  needed_ = std::move(names);
  best_ = best;
  return Mark();
}

absl::Status KeptCheckpoints::Complete(TrainingHistory state) {
  MutexLock lock(&mutex_);
  newest_ = std::move(state);
  return known_ ? Mark() : absl::OkStatus();
}

absl::Status KeptCheckpoints::Mark() {
  const auto found = ListCheckpoints(folder_);
  if (!found.ok()) return absl::OkStatus();  // there is none
  const std::set<std::string> named = newest_.Checkpoints(best_);
  absl::Status first;
  for (const std::string& folder : *found) {
    const std::string name = BaseName(folder);
    const absl::Status marked = MarkKept(folder, needed_.contains(name) || named.contains(name));
    if (!absl::IsNotFound(marked)) first.Update(marked);  // it has just been deleted
  }
  return first;
}

}  // namespace mu
