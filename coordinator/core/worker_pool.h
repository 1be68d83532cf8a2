// The workers that may run one function, in an order in which the next one to be given a call of it
// is found without a look at all of them. Pure; not synchronised.
//
// The choice: the worker that has fewest functions in flight, by the times that it takes for them:
// one that takes at least twice as long for a step as the fastest quarter is slow, and is given a
// function only if the others would not have finished all that waits before it has. Where nothing
// is known of a worker, it is not slow; steps of less than 2 ms are all equally fast. Of equals
// the one with the smallest id: where more is asked of the coordinator than it can give, some
// workers have all that they can do, several functions to a message, and the others little.
//
// To compare times, workers are in classes: an eighth of an octave (9%) each. Setting a worker and
// picking one cost what the number of classes in use is, some tens at most; not the number of
// workers.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/ids.h"

namespace mu {

class WorkerPool {
 public:
  // `most_in_flight`: functions that a worker may have.
  explicit WorkerPool(size_t most_in_flight) : most_in_flight_(most_in_flight) {}

  struct State {
    size_t in_flight = 0;
    std::optional<double> step_seconds;  // of this function; none: not known
    // It has been silent for too long: nobody waits for it, and however fast it was, it does not
    // make others slow.
    bool late = false;
  };
  // The worker may run the function. Again whenever its state has changed.
  void Set(WorkerId worker, const State& state);
  // It may not (any more).
  void Remove(WorkerId worker);

  // Who gets the next one; none: it waits. `queued`: functions that wait, this one too. `avoid`:
  // workers that get it only if there are no others.
  std::optional<WorkerId> Pick(size_t queued, const std::vector<WorkerId>& avoid) const;

 private:
  using Class = int;  // kLate, kUnknown, or of the times for a step, the quickest first
  struct Group {
    size_t workers = 0;
    size_t in_flight = 0;                  // of all of them
    std::vector<std::set<WorkerId>> free;  // that may have more, by what they have in flight
  };
  struct Place {
    Class of = 0;
    size_t in_flight = 0;
  };
  static Class ClassOf(const State& state);
  void Leave(WorkerId worker, const Place& place);

  const size_t most_in_flight_;
  size_t with_room_ = 0;           // workers that may have more
  std::map<Class, Group> groups_;  // none is empty
  absl::flat_hash_map<WorkerId, Place> places_;
};

}  // namespace mu
