// One server's part of synchronous rounds. A round is a transaction that the coordinator decides:
// contributions (steps) push to all servers that they touch, each server keeps the pushes, and when
// the coordinator has chosen the round's set, every server applies its mean once and goes to the
// next round. So all servers apply the same set, whole or not at all (two-phase commit, with the
// coordinator's decision repeated until all have it).
//
// What is kept belongs to one generation of the server's state and is in no checkpoint. All
// attempts at a contribution have read the values of the round's beginning, so the first push is as
// good as any other. Pure. Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "psserver/core/applied_steps.h"

namespace mu {

class RoundBuffer {
 public:
  // What the shell needs to apply a push; it belongs to the buffer while it is kept.
  using Gradients = std::shared_ptr<const void>;

  enum class Place {
    kFree,    // it may be kept
    kRepeat,  // it is kept: acknowledge it
    kLate,    // its round is applied, or is being applied without it: refuse it as stale
    kEarly,   // a round before it has not been applied here: it is to come again
    kFull     // more contributions than a round may have: refuse it
  };
  // `most`: contributions that are kept of a round, those that will be dropped too.
  Place PlaceOf(uint64_t round, const PushId& push, size_t most) const;
  // Of one that has a free place.
  void Keep(uint64_t round, const PushId& push, Gradients gradients);

  struct Turn {
    enum class Step {
      kApply,   // apply `chosen`, then Applied
      kRepeat,  // was applied: `updates` again
      kWait,    // is being applied
      kStale    // a later one was applied
    };
    Step step = Step::kApply;
    std::vector<Gradients> chosen;  // parallel to the set; null: it does not touch this server
    uint32_t updates = 0;
  };
  // The round's set, in the order in which its gradients are added.
  Turn Begin(uint64_t round, const std::vector<PushId>& set);
  // Of the round that is being applied: `updates` partitions were changed.
  void Applied(uint32_t updates);

  // Functions below the low-water mark are finished or cancelled.
  void DropBelow(uint64_t function);
  // A new generation: what was kept was computed from another state, and rounds may begin anywhere.
  // A round that is being applied belongs to the state before; it is forgotten at Applied.
  void Reset();

  bool applying() const { return applying_; }
  size_t kept() const { return kept_.size(); }

 private:
  uint64_t applied_ = 0;  // the last round, of this generation; 0: none
  uint32_t updates_ = 0;  // of it
  uint64_t round_ = 0;    // of what is kept
  bool applying_ = false;
  bool reset_ = false;  // while a round is being applied
  std::map<PushId, Gradients> kept_;
};

}  // namespace mu
