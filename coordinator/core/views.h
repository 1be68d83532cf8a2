// Which views of checkpoints the servers are to have, and have. A pure state machine: events in,
// what is to be done next out; no clock, thread or socket.
//
//   wanted --load--> loaded (until the servers change: then it is loaded again)
//   dropped while servers may have it --drop--> forgotten
//
// One call for a view is under way at a time, beside whatever else servers are asked. A server that
// has a view already does nothing when it is told to load it again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "coordinator/core/group_id.h"

namespace mu {

class Views {
 public:
  struct Call {
    uint64_t attempt = 0;
    ViewId view;
    bool loads = false;  // false: drops
  };

  // It is to be loaded, and again whenever servers change.
  void Want(ViewId view) { views_[view]; }
  // Nobody reads it any more. Returns whether nothing is left to be done for it, now.
  bool Drop(ViewId view);
  // All servers have it, since they last changed.
  bool IsLoaded(ViewId view) const;
  // What is to be asked of the servers now; it is under way then. `now`: see TryAgainAt.
  std::optional<Call> Next(absl::Time now);
  // The answer to a call: what it was, or nothing for one that is over. Followed by one of the next
  // four.
  std::optional<Call> Answered(uint64_t attempt);
  void Loaded(ViewId view);
  void Dropped(ViewId view) { views_.erase(view); }
  void TryAgainAt(ViewId view, absl::Time time) { views_.at(view).not_before = time; }
  int* tries(ViewId view) { return &views_.at(view).tries; }
  // It cannot be loaded: it is wanted no longer, and what some servers have of it is dropped.
  void GiveUp(ViewId view) { views_.at(view).wanted = false; }
  // A server lacks it.
  void NotThere(ViewId view);
  // Servers were lost, or have got another state: what was under way is over, and what they have is
  // not known.
  void ServersChanged();

  // When Next has something to do that it has not now.
  absl::Time alarm(absl::Time now) const;
  bool empty() const { return views_.empty(); }
  bool wanted(ViewId view) const {
    const auto it = views_.find(view);
    return it != views_.end() && it->second.wanted;
  }

 private:
  struct View {
    bool wanted = true;
    bool asked = false;   // servers may have it
    bool loaded = false;  // they have
    int tries = 0;        // in a row
    absl::Time not_before = absl::InfinitePast();
  };
  std::map<ViewId, View> views_;
  std::optional<Call> under_way_;
  uint64_t attempts_ = 0;
};

}  // namespace mu
