// What histories have seen: each event that the coordinator's core was told, each action that it or
// a worker's core wanted, what else happens in workers and servers now and then, each kind of error
// and each fault, by the number of histories.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/core/action.h"
#include "coordinator/core/event.h"
#include "tests/sim/scenario.h"
#include "worker/core/action.h"

namespace mu::sim {

inline constexpr std::string_view kMoments[] = {
    // Of workers.
    "registration awaited",
    "message repeated",  // on a stream, by the network or on another connection
    "compiled in vain",  // for an epoch that is over
    "call repeated",     // since the servers have moved
    "call given up",     // since a server does not answer
    "push not begun",    // of a run that was stopped after its step had pulled
    "step again",        // since its gradients were too late
    "results grouped",   // several in one message
    "daemon orphaned",   // the coordinator was out of reach for too long
    "another job refused",
    "daemon refused",  // by the coordinator
    "lost as one that hangs",
    // Of coordinators.
    "stream reopened", "checkpoint skipped", "input wrong",
    "round fails",  // of restores
    "group failed", "group joined", "rolled back", "coordinator ends",
    // Of users' errors.
    "user's error told",
    "error waits for earlier runs",  // of its worker, which may have failed before
    "second error dropped",          // it comes while another one is dealt with
    "worker lost while cancelling",
    "values restored",        // by the user
    "function without data",  // of training
    "schedule waits for room",
    "turn beside repeats",  // it is scheduled while an earlier one, which was joined, is repeated
    "out of data",          // a worker that reads by itself
    // Of the checkpoints' folder.
    "manifest not written", "manifest unreadable", "folder is shut", "rounds change",
    // Of a round that is skipped, since steps of another mode have taken its number.
    "server lost in an empty commit",
    // Both wait until all servers have applied the round.
    "error in a decided round", "leave in a decided round",
    // While it and another worker compute for the open round, each for a function of several steps.
    "packed contributor dies",
    // Of servers.
    "check outlasts its call", "contribution kept again", "contribution waits for first",
    "contribution refused", "round repeated", "push repeated", "push waits for first",
    "push partly inherited", "push wholly inherited", "push refused at gate", "push too late",
    "push not acknowledged", "ledger full", "server reports full", "push waits for cut",
    "cut waits", "fence waits", "save waits", "save shared", "save ended", "restore verifies",
    "restore waits", "restore repeated", "restore keeps again", "restore is here", "restore fails",
    "placed anew",
    // With fewer steps than `replicas`, since the epoch has no more.
    "small round ends epoch"};

// One of kMoments; other names do not compile.
class Moment {
 public:
  consteval Moment(const char* name) {  // NOLINT: a name is a moment
    while (kMoments[index_] != name) ++index_;
  }
  size_t index() const { return index_; }

 private:
  size_t index_ = 0;
};

// Of one history, a bit each.
struct Seen {
  enum Group { kEvent, kAction, kWorkerAction, kMoment, kRunError, kFault, kGroups };
  static constexpr size_t kMost = 128;  // of one group
  std::array<std::bitset<kMost>, kGroups> bits;

  void Saw(const Event& event) {
    Mark(kEvent, event.index());
    if (const auto* ended = std::get_if<event::RunEnded>(&event))
      Mark(kRunError, static_cast<size_t>(ended->error.kind));
  }
  void Saw(const Action& action) { Mark(kAction, action.index()); }
  void Saw(const WorkerAction& action) { Mark(kWorkerAction, action.index()); }
  void Saw(Moment moment) { Mark(kMoment, moment.index()); }
  void Saw(Fault fault) { Mark(kFault, static_cast<size_t>(fault)); }
  void Mark(Group group, size_t bit) { bits[group].set(bit); }
};
static_assert(std::size(kMoments) <= Seen::kMost);

class Coverage {
 public:
  void Add(const Seen& seen);
  struct Row {
    const char* kind;
    std::string name;
    uint64_t histories = 0;
  };
  // That have seen it.
  uint64_t Histories(Moment moment) const { return counts_[Seen::kMoment][moment.index()]; }
  std::vector<Row> Rows() const;
  std::string Table() const;

 private:
  std::array<std::array<uint64_t, Seen::kMost>, Seen::kGroups> counts_{};
};

}  // namespace mu::sim
