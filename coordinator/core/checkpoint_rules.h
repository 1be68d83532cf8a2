// Which checkpoints of a job's folder a coordinator deletes, and when it may add one to them. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mu {

// What lies in a folder for one checkpoint.
struct KnownCheckpoint {
  bool complete = true;  // it has a manifest
  bool bad = false;      // its files were found to be damaged or missing
  bool kept = false;     // a user has marked it, or somebody reads it
  uint64_t point = 0;    // servers may go back to it, to the highest first; 0: they may not
};

// Positions in `folders` (oldest first) of those that go, in this order: what failed ones have
// left, then the oldest. Of complete ones the newest `keep` good ones stay, and the good one that
// servers go back to first. Incomplete ones stay if they are newer than all of these: they may
// still be under way, and the greatest number must stay. 0 keeps all.
inline std::vector<size_t> CheckpointsToDelete(const std::vector<KnownCheckpoint>& folders,
                                               size_t keep) {
  std::vector<size_t> failed, old;
  if (keep == 0) return old;
  uint64_t first = 0;
  for (const KnownCheckpoint& checkpoint : folders) {
    if (checkpoint.complete && !checkpoint.bad) first = std::max(first, checkpoint.point);
  }
  size_t good = 0;
  bool newer = false;  // there is a complete one that is
  for (size_t i = folders.size(); i > 0; --i) {
    const KnownCheckpoint& checkpoint = folders[i - 1];
    if (!checkpoint.complete) {
      if (newer) failed.push_back(i - 1);
      continue;
    }
    newer = true;
    const bool wanted = checkpoint.point != 0 && checkpoint.point == first;
    if (good == keep && !checkpoint.kept && !wanted) old.push_back(i - 1);
    // A damaged one does not stand for a good one, which is older.
    if (good < keep && !checkpoint.bad) ++good;
  }
  old.insert(old.end(), failed.begin(), failed.end());
  std::reverse(old.begin(), old.end());
  return old;
}

// When a coordinator may add a checkpoint to its job's folder: not while it holds checkpoints that
// the program has neither continued nor declined to. One of now would be taken for the job's newest
// state.
class CheckpointClaim {
 public:
  // The program does not continue what is there.
  void StartFresh() { fresh_ = true; }
  bool fresh() const { return fresh_; }
  // Whether it depends on what the folder holds. `begun`: see FunctionQueue.
  bool MustLook(bool begun) const { return !begun && !fresh_; }
  // FAILED_PRECONDITION if the folder holds checkpoints; else what it gets is this program's own,
  // which starts fresh with that.
  absl::Status Looked(const std::string& folder, bool holds_checkpoints) {
    if (holds_checkpoints) {
      return absl::FailedPreconditionError(absl::StrCat(
          folder,
          " holds checkpoints, and this program has neither continued from them nor begun: a "
          "checkpoint of now would be taken for the job's newest state; call Restore() first, or "
          "StartFresh(), or take another directory"));
    }
    fresh_ = true;
    return absl::OkStatus();
  }

 private:
  bool fresh_ = false;
};

}  // namespace mu
