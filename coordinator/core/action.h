// What the core wants to be done. The shell carries actions out in their order and decides nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "coordinator/core/checkpoint_number.h"
#include "coordinator/core/event.h"
#include "coordinator/core/failure_list.h"
#include "coordinator/core/function_queue.h"
#include "coordinator/core/installations.h"
#include "coordinator/core/membership.h"

namespace mu::action {

// Answers to calls of daemons.
struct AnswerRegister {
  CallId call;
  absl::Status status;
  uint32_t index = 0;
  Generation generation;     // servers of an older one do not serve
  absl::Duration heartbeat;  // how often it is to send one
};
struct AnswerHeartbeat {
  CallId call;
  absl::Status status;
  FunctionId low_water;
  Generation generation;
  bool dismissed = false;
};
struct AnswerLeave {
  CallId call;
};

// Members. Of a worker that is lost all calls are cancelled.
struct MemberJoined {
  Member member;
};
struct MemberLost {
  Member member;
  std::string kind;  // see MemberFailure
  std::string message;
  bool silent = false;  // nobody has seen its process end: it may still run
};
// The worker is sent this part of the catalog as it is now, once. One at a time per worker;
// answered by event::Installed.
struct Install {
  WorkerId worker;
  InstallPart part;
};

// Workers are soon to read this epoch.
struct MakePlan {
  DataLayout data;
  uint64_t epoch = 0;
};
// The worker is given the scan's dataset, then looks through these files; each is answered by
// event::Scanned.
struct ScanFiles {
  ScanId scan;
  WorkerId worker;
  std::vector<uint32_t> files;
};
// The event's answer is the one that counts for this file.
struct FileCounts {
  ScanId scan;
  uint32_t file = 0;
};
// What still looks for it may end.
struct ScanDone {
  ScanId scan;
  absl::Status status;
};

// Functions.
struct Scheduled {
  FunctionId function;
};
struct Start {
  StartRun start;
};
struct StopRun {
  WorkerId worker;
  RunId run;
};
// The value of step `result` of the event's list goes to whoever waits for the function.
struct Deliver {
  FunctionId function;
  size_t result = 0;
};
// Of a contribution, whose result counts when its round is committed: the same value is kept, in
// place of one that was kept before, until DeliverKept or Finish.
struct KeepResult {
  FunctionId function;
  size_t result = 0;
};
struct DeliverKept {
  FunctionId function;
};
struct Finish {
  FunctionId function;
  absl::Status status;
};

// Cancelling: runs of functions below `below` end on these workers, each is answered by
// event::WorkerCancelled.
struct CancelOnWorkers {
  FunctionId below;
  Generation generation;  // in which they ran
  std::vector<WorkerId> workers;
};
// These servers refuse functions below `below` in this generation; answered by event::Fenced.
struct FenceServers {
  uint64_t attempt = 0;
  FunctionId below;
  Generation generation;
  std::vector<uint32_t> servers;
};
// Nothing is left of what was cancelled; `error`, unless OK, is now to be reported once.
struct Cancelled {
  absl::Status error;
};

// Groups. Nothing of it runs any more; the error is to be reported to who joins it, once.
struct GroupFailed {
  GroupId group;
  absl::Status error;
};
// All servers load the view's values, or forget them; answered by event::ViewAnswered. One of these
// is under way at a time, beside anything else.
struct LoadView {
  uint64_t attempt = 0;
  ViewId view;
  Generation generation;  // of the servers' state
};
struct DropView {
  uint64_t attempt = 0;
  ViewId view;
  Generation generation;
};
// Its checkpoint is not read any more.
struct ViewUnused {
  ViewId view;
};

// Servers' state. One of Configure, Assign, Load and Save is under way at a time.
struct TaskDone {
  TaskId task;
  absl::Status status;
};
// The servers are given all that was created, in this generation; answered by event::Configured.
struct Configure {
  uint64_t attempt = 0;
  Generation generation;
  bool reset = false;  // and initial values: they may hold what an older coordinator left
};
// Once for each place among the functions, however often it is called; answered by event::Assigned.
struct Assign {
  uint64_t attempt = 0;
  FunctionId place;
  std::shared_ptr<const Assignment> assignment;
};
// All servers apply this set once, however often they are told; answered by event::RoundCommitted.
struct CommitRound {
  uint64_t attempt = 0;
  Generation generation;
  RoundSet set;
};
// Are the checkpoint's files there, as this process sees them? Of the task that is to load it, or
// (0) of a point that servers go back to. Answered by event::FilesSeen.
struct LookAtFiles {
  Generation generation;
  TaskId task;
  CheckpointNumber point;
};
// Nothing uses it any more, and it does not stand for a good one. As in LookAtFiles.
struct CheckpointBad {
  TaskId task;
  CheckpointNumber point;
};
// All servers load what the task names, in this generation; answered by event::Loaded. It is
// `point` from then on.
struct Load {
  uint64_t attempt = 0;
  TaskId task;
  Generation generation;
  CheckpointNumber point;
};
// Workers are to use the servers that the last Configure, Load or Restore went to.
struct UseRouting {};
struct InterruptServers {};  // calls to them that may take long end soon
struct Paused {};            // nothing is dispatched until Serving
// Each server takes the generation, and loads the checkpoint unless it keeps its state; answered by
// event::Restored.
struct Restore {
  Generation generation;
  CheckpointNumber checkpoint;
  std::vector<bool> keep;  // by server
};
struct Serving {
  Generation generation;
  std::vector<MemberFailure> back;  // failures that are over with that
};

// Checkpoints. Each server takes its cut and writes it; answered by event::Saved.
struct Save {
  CheckpointNumber checkpoint;
  TaskId task;            // 0: none, a server wants to leave
  Generation generation;  // of the servers' state
};
// The position that PositionAfterCuts gives goes into it; answered by event::ManifestWritten.
struct WriteManifest {
  CheckpointNumber checkpoint;
};
struct Committed {
  CheckpointNumber checkpoint;
  CheckpointNumber oldest;  // that servers may still go back to
};
struct Aborted {
  CheckpointNumber checkpoint;
  absl::Status reason;
};

// For the log.
struct Note {
  enum class Level { kInfo, kWarning, kError } level = Level::kInfo;
  std::string text;
};

}  // namespace mu::action

namespace mu {

using Action = std::variant<
    action::AnswerRegister, action::AnswerHeartbeat, action::AnswerLeave, action::MemberJoined,
    action::MemberLost, action::Install, action::MakePlan, action::ScanFiles, action::FileCounts,
    action::ScanDone, action::LookAtFiles, action::CheckpointBad, action::Scheduled, action::Start,
    action::StopRun, action::Deliver, action::KeepResult, action::DeliverKept, action::Finish,
    action::CommitRound, action::GroupFailed, action::LoadView, action::DropView,
    action::ViewUnused, action::CancelOnWorkers, action::FenceServers, action::Cancelled,
    action::TaskDone, action::Configure, action::Assign, action::Load, action::UseRouting,
    action::InterruptServers, action::Paused, action::Restore, action::Serving, action::Save,
    action::WriteManifest, action::Committed, action::Aborted, action::Note>;
using Actions = std::vector<Action>;

}  // namespace mu
