// What is scheduled, and how it runs once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/core/group_id.h"
#include "proto/tensor.pb.h"

namespace mu {

// One attempt to run a function on a worker; results of an attempt that is no longer the current
// one are ignored, unless it was superseded by a backup run and has the next result first.
using RunId = StrongId<struct RunIdTag, uint64_t>;

// A value given to a whole variable, or to some rows of a variable or table.
struct Assignment {
  std::string variable;  // or table
  pb::TensorProto value;
  bool table = false;
  std::vector<int64_t> rows = {};  // that `value` has; of a variable none: it has all
};

// Steps that change no state draw as steps from here, which no job reaches: a call draws other
// numbers than the one before it, and what trains the same ones whatever is read meanwhile.
inline constexpr uint64_t kFirstReadingDraw = uint64_t{1} << 62;

struct FunctionWork {
  Fingerprint fingerprint;
  std::string name;  // as its user calls it, for messages
  uint32_t steps = 1;
  uint64_t dataset = 0;        // 0: reads none
  uint64_t needs_version = 0;  // of the catalog that a worker must have installed
  // Steps that change state and that were bound before it, for learning-rate schedules. Set when it
  // is bound.
  uint64_t step_offset = 0;
  // Of one that changes no state, once it is bound: its first step draws its random numbers as this
  // step of the job. 0: step_offset says so.
  uint64_t draw_offset = 0;
  GroupId group;         // 0: training
  ViewId view;           // whose values it reads; set by the core. 0: the current ones
  bool trains = false;   // it changes variables or tables; only in training
  bool updates = false;  // and is repeated after a RollBack; set by the core
  std::shared_ptr<const std::vector<pb::TensorProto>> args;  // scalars; null: none
  std::shared_ptr<const Assignment> assignment;              // not null: this is no function
};

struct StartRun {
  FunctionId function;
  RunId run;
  WorkerId worker;
  uint32_t first_step = 0;
  uint32_t steps = 0;
  uint64_t round = 0;  // that its only step contributes to; 0: none
};

// When a function without a result runs elsewhere too: after so many seconds, and so many times the
// median of its steps. The median is not known before the first result.
struct BackupRule {
  double least_seconds = 30;
  double times_median = 10;
};

}  // namespace mu
