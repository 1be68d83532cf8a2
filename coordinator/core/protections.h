// Protections of the core that the simulation can take away, to see that its checker notices. In
// the product MU_BROKEN is `false` and nothing of this is compiled.
#pragma once

#ifdef MUSTER_BREAKABLE
namespace mu::core {

struct Broken {
  bool requeueing = false;            // a lost worker's functions stay lost
  bool low_water_high = false;        // the mark passes functions that a restore would run again
  bool low_water_stuck = false;       // the mark never rises
  bool commit_after_fence = false;    // functions that are cancelled end no checkpoint
  bool cancel_below_mark = false;     // a cancellation ends what is below the low-water mark only
  bool late_position = false;         // the position is noted after the cuts
  bool resumed_untrained = false;     // functions of a manifest do not count as training
  bool not_reinstalled = false;       // a worker that forgot its functions does not get them again
  bool far_ahead = false;             // a function starts however far it is ahead
  bool late_results = false;          // a result of an earlier round counts for the open one
  bool half_committed = false;        // a round is committed when one server has applied it
  bool never_due = false;             // no round waits for what is too late again and again
  bool cut_in_a_round = false;        // a checkpoint does not wait for a decided round
  bool fence_in_a_round = false;      // nor the fence that follows an error
  bool leave_in_a_round = false;      // nor the leave of a server
  bool mixed_load = false;            // servers keep what a load that failed has left
  bool renamed_load = false;          // what servers found in a renamed folder counts
  bool views_kept = false;            // a view counts as loaded on servers that have changed
  bool early_views = false;           // a function reads a view that is not loaded
  bool groups_fail_together = false;  // an error of a group cancels training
  bool groups_lost = false;           // an error of training ends functions of groups
};
inline thread_local Broken broken;

}  // namespace mu::core
#define MU_BROKEN(protection) (::mu::core::broken.protection)
#else
#define MU_BROKEN(protection) false
#endif
