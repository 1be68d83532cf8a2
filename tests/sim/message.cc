#include "tests/sim/message.h"

#include "absl/strings/str_cat.h"

namespace mu::sim {
namespace {

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kTick:
      return "tick";
    case Kind::kRetry:
      return "retry";
    case Kind::kComputed:
      return "computed";
    case Kind::kInstalled:
      return "installed";
    case Kind::kInterrupted:
      return "interrupted";
    case Kind::kAlarm:
      return "alarm";
    case Kind::kApply:
      return "apply";
    case Kind::kApplied:
      return "applied";
    case Kind::kPrepared:
      return "prepared";
    case Kind::kWritten:
      return "written";
    case Kind::kVerified:
      return "verified";
    case Kind::kLoaded:
      return "loaded";
    case Kind::kPlanMade:
      return "plan made";
    case Kind::kCheckpointDue:
      return "checkpoint due";
    case Kind::kAssigned:
      return "assigned";
    case Kind::kManifestDue:
      return "manifest written";
    case Kind::kUserError:
      return "user's error";
    case Kind::kRegister:
      return "Register";
    case Kind::kHeartbeat:
      return "Heartbeat";
    case Kind::kLeave:
      return "Leave";
    case Kind::kConfigure:
      return "Configure";
    case Kind::kPull:
      return "Pull";
    case Kind::kPush:
      return "Push";
    case Kind::kSave:
      return "Save";
    case Kind::kRestore:
      return "Restore";
    case Kind::kFence:
      return "Fence";
    case Kind::kCancelBelow:
      return "CancelRuns";
    case Kind::kInstall:
      return "Install";
    case Kind::kRun:
      return "Run";
    case Kind::kCancelRun:
      return "cancels run";
    case Kind::kReply:
      return "answer";
    case Kind::kStepResult:
      return "result";
    case Kind::kRunEnded:
      return "run ended";
    case Kind::kDaemonDied:
      return "daemon died";
    case Kind::kConnectionLost:
      return "connection lost";
    case Kind::kDrain:
      return "SIGTERM";
    case Kind::kStrike:
      return "strike";
    case Kind::kStartProcess:
      return "start";
    case Kind::kStartCoordinator:
      return "start coordinator";
    case Kind::kKillProcess:
      return "kill";
  }
  return "?";
}

const char* NameOf(Code code) {
  switch (code) {
    case Code::kOk:
      return "";
    case Code::kMachine:
      return " UNAVAILABLE";
    case Code::kServerGone:
      return " SERVER GONE";
    case Code::kHandedBack:
      return " HANDED BACK";
    case Code::kStale:
      return " STALE";
    case Code::kNotInstalled:
      return " NOT INSTALLED";
    case Code::kNotMember:
      return " NOT A MEMBER";
    case Code::kBadFile:
      return " BAD FILE";
    case Code::kCannotRead:
      return " CANNOT READ";
    case Code::kDiskFull:
      return " DISK FULL";
  }
  return "?";
}

}  // namespace

std::string KindName(const Message& m) {
  std::string text = NameOf(m.kind);
  if (m.kind == Kind::kReply) absl::StrAppend(&text, " to ", NameOf(m.request));
  absl::StrAppend(&text, NameOf(m.code));
  if (m.function != 0) absl::StrAppend(&text, " function ", m.function);
  if (m.run != 0) absl::StrAppend(&text, " run ", m.run);
  if (m.kind == Kind::kPush || m.kind == Kind::kStepResult)
    absl::StrAppend(&text, " step ", m.step);
  if (m.kind == Kind::kPush) absl::StrAppend(&text, " record ", m.records[0]);
  if (m.kind == Kind::kStepResult) {
    for (int s = 0; s < kMaxServers; ++s) {
      if (m.step_updates[s] + m.step_inherited[s] == 0) continue;
      absl::StrAppend(&text, ", server ", s, ": ", m.step_updates[s], " updates ",
                      m.step_inherited[s], " inherited");
    }
  }
  if (m.kind == Kind::kRun) absl::StrAppend(&text, " steps ", m.first_step, " to ", m.steps);
  if (m.checkpoint != 0) absl::StrAppend(&text, " checkpoint ", m.checkpoint);
  if (m.keep_state) absl::StrAppend(&text, " keep state");
  if (m.repeated) absl::StrAppend(&text, " repeated");
  if (m.epoch != 0) absl::StrAppend(&text, " epoch ", m.epoch);
  if (m.generation != 0) absl::StrAppend(&text, " generation ", m.generation);
  if (m.low_water != 0) absl::StrAppend(&text, " low water ", m.low_water);
  if (m.copy) absl::StrAppend(&text, " (second copy)");
  return text;
}

}  // namespace mu::sim
