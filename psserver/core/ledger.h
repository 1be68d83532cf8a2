// The memory of applied pushes: it makes a push happen once (docs/design.md, "Exactly once").
//
// Functions below the low-water mark are finished: what was remembered of them is forgotten and
// their pushes are refused. Pure: no lock, clock or thread; the caller guards it and keeps those
// who wait for a push in progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "psserver/core/applied_steps.h"

namespace mu {

class Ledger {
 public:
  enum class Answer {
    kFirst,       // apply it, then Finish
    kRepeat,      // was applied: acknowledge
    kInProgress,  // the first one is being applied: wait for its end
    kStale,       // below the low-water mark: refuse
    kFull,        // there is no room to remember it: refuse
  };

  static constexpr size_t kDefaultMost = size_t{1} << 22;

  // `most` bounds what is remembered, in entries (a function's steps in order are one).
  explicit Ledger(size_t most = kDefaultMost) : most_(most) {}

  Answer Begin(const PushId& push);
  // Ends a kFirst. Remembered if it was applied; forgotten if it was refused, so that it may come
  // again.
  void Finish(const PushId& push, bool applied);

  // Marks never go back: a lower one is ignored. Pushes in progress below it still end with Finish.
  void RaiseLowWater(uint64_t function);
  uint64_t low_water() const { return low_water_; }
  // True while a push of a function below `function` is in progress.
  bool InProgressBelow(uint64_t function) const;
  bool idle() const { return in_progress_.empty(); }

  const AppliedSteps& applied() const { return applied_; }
  uint64_t remembered_steps() const { return applied_.steps(); }
  size_t entries() const { return applied_.entries(); }
  size_t most() const { return most_; }
  // All but what is in progress.
  void Clear();

 private:
  bool HasRoomFor(const PushId& push) const;

  const size_t most_;
  uint64_t low_water_ = 0;
  AppliedSteps applied_;
  std::set<PushId> in_progress_;
};

}  // namespace mu
