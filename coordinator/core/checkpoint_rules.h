// Which checkpoints of a job's folder a coordinator deletes, and when it may add one to them. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mu {

// A complete checkpoint.
struct KnownCheckpoint {
  bool bad = false;    // its files were found to be damaged or missing
  bool kept = false;   // a user has marked it
  uint64_t point = 0;  // servers may go back to it, to the highest first; 0: they may not
};

// Positions in `complete` (oldest first) of those that go if the newest `keep` good ones stay, and
// the good one that servers go back to first. 0 keeps all.
inline std::vector<size_t> CheckpointsToDelete(const std::vector<KnownCheckpoint>& complete,
                                               size_t keep) {
  std::vector<size_t> old;
  if (keep == 0) return old;
  uint64_t first = 0;
  for (const KnownCheckpoint& checkpoint : complete) {
    if (!checkpoint.bad) first = std::max(first, checkpoint.point);
  }
  size_t good = 0;
  for (size_t i = complete.size(); i > 0; --i) {
    const KnownCheckpoint& checkpoint = complete[i - 1];
    const bool wanted = checkpoint.point != 0 && checkpoint.point == first;
    if (good == keep && !checkpoint.kept && !wanted) old.push_back(i - 1);
    // A damaged one does not stand for a good one, which is older.
    if (good < keep && !checkpoint.bad) ++good;
  }
  return old;
}

// False: there are checkpoints, and the program has neither continued from one nor begun. One of
// now would be taken for the job's newest state. `begun`: or has said that it starts fresh.
inline bool MayAddCheckpoint(bool begun, bool any_complete) { return begun || !any_complete; }

}  // namespace mu
