// What the core is told. Ids, small values and handles; no tensors, no values of steps. Each comes
// with the time at which it is handled (Core::Step).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "common/base/ids.h"
#include "coordinator/core/call_error.h"
#include "coordinator/core/checkpoint_number.h"
#include "coordinator/core/data_leases.h"
#include "coordinator/core/function_queue.h"
#include "coordinator/core/installations.h"
#include "coordinator/core/recovery.h"
#include "coordinator/core/server_task.h"
#include "coordinator/core/step_outcome.h"
#include "proto/coordinator.pb.h"

namespace mu {

// A call of a daemon that waits for its answer; the shell's name for it.
using CallId = StrongId<struct CallIdTag, uint64_t>;
// The shell's name for a scan that a caller waits for.
using ScanId = StrongId<struct ScanIdTag, uint64_t>;

namespace event {

// Some time has passed: at every heartbeat interval, after what has arrived was handled, and when
// Core::alarm() is due.
struct Tick {};

// Members.
struct Register {
  CallId call;
  pb::RegisterRequest request;
};
struct Heartbeat {
  CallId call;
  pb::HeartbeatRequest request;
};
struct Leave {
  CallId call;
  pb::LeaveRequest request;
};
// The process with this id is known to be dead; `message`: its last lines.
struct DaemonDied {
  int64_t pid = 0;
  std::string message;
};
// Somebody has seen a coordinator of this epoch.
struct EpochSeen {
  CoordinatorEpoch epoch;
};

// What workers have to know: routing, datasets, functions. Versions of the catalog.
struct CatalogChanged {
  uint64_t version = 0;
  uint64_t routing_version = 0;  // of the catalog when the routing changed last
  Generation generation;         // of that routing
  uint64_t parameters = 0;       // grows with every variable and table; servers ought to have them
  std::vector<InstallPart> parts = {};  // that this version has added or changed
};
struct Installed {  // answers action::Install
  WorkerId worker;
  Incarnation incarnation;
  CallError error;
};

// Data. Plans take long to make: they come from outside.
struct DatasetAdded {
  DataLayout data;
  DataLeases::Plan first;  // of epoch 0
};
// Whoever reads this dataset begins anew.
struct EpochStarted {
  uint64_t dataset = 0;
  uint64_t epoch = 0;
  DataLeases::Plan plan;
};
struct PlanMade {  // answers action::MakePlan
  uint64_t dataset = 0;
  DataLeases::Plan plan;
};
// Workers are to look through these files (indices) of a dataset; answered by action::ScanDone.
struct ScanWanted {
  ScanId scan;
  std::shared_ptr<const pb::DatasetProto> dataset;
  std::vector<uint32_t> files;
};
// Of action::ScanFiles: one file, or all of them if the dataset could not be installed.
struct Scanned {
  ScanId scan;
  WorkerId worker;
  Incarnation incarnation;
  std::vector<uint32_t> files;
  bool installed = true;
  CallError error;
};

// Functions.
struct Schedule {
  FunctionWork work;
};
struct Results {
  StartRun start;
  std::vector<StepOutcome> steps;
  bool handed_back = false;  // the worker leaves; the rest is for others
};
struct RunEnded {
  StartRun start;
  CallError error;  // OK: by itself
};
// What the worker says makes no sense. `run`: of which it says so, perhaps of none that it has.
struct Unreadable {
  WorkerId worker;
  Incarnation incarnation;
  RunId run;
  std::string what;
};

// Groups beside training. `view`: a new one of the checkpoint whose values their functions read; 0:
// they read the current ones. `same`: the views of this checkpoint that are not unused yet. The
// group has one of them instead, and the new one is unused, if one is wanted.
struct GroupMade {
  GroupId group;
  ViewId view;
  std::vector<ViewId> same = {};
};
// What is left of it is cancelled. Its view is dropped, unless another group has it too.
struct GroupDropped {
  GroupId group;
};
struct CancelGroup {
  GroupId group;
};
struct ViewAnswered {
  uint64_t attempt = 0;  // of action::LoadView or DropView
  CallError error;
};

// Cancelling: training.
struct CancelEverything {};
struct WorkerCancelled {
  WorkerId worker;
  Incarnation incarnation;
  CallError error;
};
struct Fenced {
  uint64_t attempt = 0;                  // of action::FenceServers
  std::map<uint32_t, CallError> failed;  // servers that have not confirmed; all others have
};
// The cluster cannot go on.
struct Fail {
  absl::Status error;
};
// The coordinator ends; daemons may still take their leave. `dismiss`: they are to do so, since the
// job is over.
struct Close {
  bool dismiss = false;
};

// Servers' state.
struct EnableRecovery {
  RecoveryMode mode = RecoveryMode::kAll;
};
// Answered by action::TaskDone.
struct TaskWanted {
  TaskId task;
  ServerTask what;
};
// What has not been begun ends with this error; but for assignments, which some servers may have
// made.
struct TasksGivenUp {
  absl::Status error;
};
struct Configured {
  uint64_t attempt = 0;  // of action::Configure
  CallError error;
};
struct Assigned {
  uint64_t attempt = 0;  // of action::Assign
  CallError error;
};
struct Loaded {
  uint64_t attempt = 0;  // of action::Load
  CallError error;
  bool asked = true;              // servers were; false: they hold what they did
  std::vector<uint64_t> updates;  // by server: how many its state holds
  std::string renamed;            // the folder's name, if it has another one since
  bool looked = false;            // see action::LookAtFiles: `error` says what came of it
};
struct Restored {
  Generation generation;  // of action::Restore
  CallError error;
  std::vector<uint64_t> updates;  // by server: how many its state holds
  std::string from;               // what they were given, for the report
  std::string renamed;            // the folder's name, if it has another one since
  bool looked = false;            // see action::LookAtFiles: `error` says what came of it
};
// What the coordinator itself sees of a checkpoint's files.
struct FilesSeen {
  Generation generation;  // of action::LookAtFiles
  absl::Status status;
};

// Checkpoints, see checkpoint_commit.h.
struct Saved {
  CheckpointNumber checkpoint;
  absl::Status status;
};
struct ManifestWritten {
  CheckpointNumber checkpoint;
  absl::Status status;
};

// Memory, see update_pause.h. How much may be kept for repeats; 0: any amount.
struct MostKept {
  uint64_t bytes = 0;
};

// See FunctionQueue::BoundStaleness.
struct BoundStaleness {
  std::optional<uint64_t> steps;
};

// See FunctionQueue::SetRounds. Ignored unless Core::MaySetRounds grants it.
struct SetRounds {
  RoundRules rules;
};
// Whoever schedules waits for what there is: a round that is not full need not wait for more. Until
// the next Schedule.
struct NothingMore {};
struct RoundCommitted {
  uint64_t attempt = 0;  // of action::CommitRound
  CallError error;
  std::vector<uint32_t> updates;  // by server: partitions that it changed
};

}  // namespace event

using Event = std::variant<
    event::Tick, event::Register, event::Heartbeat, event::Leave, event::DaemonDied,
    event::EpochSeen, event::CatalogChanged, event::Installed, event::DatasetAdded,
    event::EpochStarted, event::PlanMade, event::ScanWanted, event::Scanned, event::FilesSeen,
    event::Schedule, event::Results, event::RunEnded, event::Unreadable, event::CancelEverything,
    event::WorkerCancelled, event::Fenced, event::Fail, event::Close, event::GroupMade,
    event::GroupDropped, event::CancelGroup, event::ViewAnswered, event::EnableRecovery,
    event::TaskWanted, event::TasksGivenUp, event::Configured, event::Assigned, event::Loaded,
    event::Restored, event::Saved, event::ManifestWritten, event::MostKept, event::BoundStaleness,
    event::SetRounds, event::NothingMore, event::RoundCommitted>;

}  // namespace mu
