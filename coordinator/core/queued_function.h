// A function of the FunctionQueue, and how far it is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/core/batch_range.h"
#include "coordinator/core/function_work.h"
#include "coordinator/core/group_id.h"

namespace mu {

struct QueuedFunction {
  FunctionWork work;
  bool bound = false;
  uint32_t steps = 0;  // once bound
  // The first that this attempt has to run, or its result has not arrived
  uint32_t next_step = 0;
  // Steps whose results were delivered, in this attempt or an earlier one
  uint32_t delivered = 0;
  std::vector<BatchRange> batches;
  std::optional<WorkerId> worker;  // where it runs
  RunId run;
  // When it was scheduled, everything below had finished: its user may have joined that first, so
  // it runs after that, also where both are repeated. 0: not known.
  FunctionId after;
  std::vector<WorkerId> avoid;    // workers that could not reach a server for it
  uint32_t unreadable = 0;        // answers to it, of any worker
  uint32_t lost = 0;              // workers that ended while they ran it, since its last result
  uint32_t backups = 0;           // workers on which it hung, since its last result
  bool finished = false;          // once, at least: this is a repeat
  bool waited = false;            // for steps of others, see BoundStaleness
  std::vector<uint32_t> samples;  // of each delivered step of a function that changes state

  bool Avoids(WorkerId id) const {
    return std::find(avoid.begin(), avoid.end(), id) != avoid.end();
  }
  // Somebody in training waits for it: it has never finished. Groups are counted by themselves.
  bool awaited() const {
    return !finished && work.assignment == nullptr && work.group == GroupId();
  }
  bool training_awaited() const { return awaited() && work.trains; }
};

}  // namespace mu
