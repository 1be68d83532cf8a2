// What callers ask to be done with the servers' state. The core does one after the other, when the
// servers serve; what a lost server makes fail is tried again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/core/checkpoint_number.h"
#include "coordinator/core/data_leases.h"
#include "coordinator/core/function_queue.h"
#include "proto/checkpoint.pb.h"

namespace mu {

// The shell's name for a task that a caller waits for.
using TaskId = StrongId<struct TaskIdTag, uint64_t>;

struct ResumePoint;

struct ServerTask {
  enum class Kind {
    kReady,   // the servers have all that was created, and serve
    kAssign,  // `assignment` is made, once
    kLoad,    // the servers load the values of a checkpoint
    kSave,    // a checkpoint is taken
  };
  Kind kind = Kind::kReady;
  std::shared_ptr<const Assignment> assignment;
  // kAssign: while updates pause (update_pause.h), for checkpoints are taken that make room. False:
  // only once the job has begun, see Core::RoomToAssign.
  bool waits_for_room = true;
  // kReady, kSave: also what has finished is on the servers, if all of training has. An assignment
  // comes after what has finished in any case.
  bool after_repeats = false;
  // kSave: taken beside a program that trains. CANCELLED once functions were cancelled, until
  // training is scheduled again: they are not in the position, and their data is behind it, so a
  // job that was continued from there would lack it.
  bool background = false;
  CheckpointNumber loaded;                   // kLoad: the number that the manifest says
  std::shared_ptr<const ResumePoint> point;  // kLoad: where the job stood
};

// Of datasets that every worker reads by itself: batches that were given to functions.
struct OwnSteps {
  std::map<std::string, uint64_t> by_dataset;  // by its name
  uint64_t others = 0;                         // of each dataset that is not there
};
// Where a job stood when a checkpoint was taken of it.
struct JobPosition {
  FunctionQueue::Position functions;
  uint64_t steps = 0;  // of functions that change state
  uint64_t samples = 0;
  uint64_t taken_steps = 0;            // see FunctionQueue::taken_steps
  std::vector<uint64_t> acknowledged;  // by server: updates whose results had arrived
  std::optional<OwnSteps> own_steps;   // none: an earlier program did not say
};
// What is taken over with a checkpoint's values.
struct ResumePoint {
  struct Data {
    uint64_t dataset = 0;
    pb::DatasetPositionProto position;
    DataLeases::Plan plan;  // of the position's epoch
  };
  // A coordinator that was started again continues there. False: nothing of the job runs again, but
  // what is new must not have the ids of its functions.
  bool resumes = false;
  // What was trained before would be overwritten: it is refused once a function was scheduled.
  bool begins = false;
  JobPosition job;
  std::vector<Data> data;  // known datasets
};

}  // namespace mu
