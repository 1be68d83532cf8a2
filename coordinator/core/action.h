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
#include "coordinator/core/membership.h"
#include "coordinator/core/restore_round.h"

namespace mu::action {

// Answers to calls of daemons.
struct AnswerRegister {
  CallId call;
  absl::Status status;
  uint32_t index = 0;
  Generation generation;  // servers of an older one do not serve
};
struct AnswerHeartbeat {
  CallId call;
  absl::Status status;
  FunctionId low_water;
  Generation generation;
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
};
// The worker is sent what the catalog has gained since this version (0: everything). One at a time
// per worker; answered by event::Installed or -Failed.
struct Install {
  WorkerId worker;
  uint64_t since = 0;
};

// What event::CannotRead told of ends with this.
struct InputWrong {
  absl::Status error;
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
// Servers refuse functions below `below` in this generation; answered by event::Fenced.
struct FenceServers {
  uint64_t attempt = 0;
  FunctionId below;
  Generation generation;
};
// Nothing is left of what was cancelled; `error`, unless OK, is now to be reported once.
struct Cancelled {
  absl::Status error;
};
// Every call fails with this from now on.
struct Ended {
  absl::Status error;
};

// Servers' state.
struct InterruptServers {};  // calls that save or restore end soon
struct Paused {};            // nothing is dispatched until Serving
struct RolledBack {
  CheckpointNumber checkpoint;
  FunctionQueue::RolledBack back;
};
// Each server is answered by event::RestoreDone or -Failed.
struct Restore {
  RestoreRound round;
};
struct SaveForLeave {};  // a checkpoint; answered by event::LeaveSaved
struct Serving {
  Generation generation;
  std::vector<MemberFailure> back;  // failures that are over with that
};

// Checkpoints. The position that PositionAfterCuts gives goes into the manifest.
struct Save {
  CheckpointNumber checkpoint;
  uint32_t server = 0;
};
struct WriteManifest {
  CheckpointNumber checkpoint;
};
struct Committed {
  CheckpointNumber checkpoint;
};
struct Aborted {
  CheckpointNumber checkpoint;
  absl::Status reason;
};

struct RepeatAssignment {
  uint64_t attempt = 0;
  FunctionId place;
  std::shared_ptr<const Assignment> assignment;
};

// For the log.
struct Note {
  enum class Level { kInfo, kWarning, kError } level = Level::kInfo;
  std::string text;
};

}  // namespace mu::action

namespace mu {

using Action =
    std::variant<action::AnswerRegister, action::AnswerHeartbeat, action::AnswerLeave,
                 action::MemberJoined, action::MemberLost, action::Install, action::InputWrong,
                 action::Scheduled, action::Start, action::StopRun, action::Deliver, action::Finish,
                 action::CancelOnWorkers, action::FenceServers, action::Cancelled, action::Ended,
                 action::InterruptServers, action::Paused, action::RolledBack, action::Restore,
                 action::SaveForLeave, action::Serving, action::Save, action::WriteManifest,
                 action::Committed, action::Aborted, action::RepeatAssignment, action::Note>;
using Actions = std::vector<Action>;

}  // namespace mu
