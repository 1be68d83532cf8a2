// Who belongs to the cluster: registration, heartbeats, leaves, losses, installation.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/base/status_text.h"
#include "coordinator/core/core.h"
#include "coordinator/core/protections.h"
#include "coordinator/core/protocol_check.h"

namespace mu {
namespace {

// Another try would be refused as well, unless all places are taken: by a server perhaps that is
// lost, and of which nobody knows yet.
absl::Status Refusal(absl::Status status) {
  const bool full = absl::IsResourceExhausted(status);
  return WithKind(std::move(status), full ? pb::ERROR_MACHINE : pb::ERROR_USER,
                  pb::ROLE_COORDINATOR);
}

absl::Status RegisterAgain(absl::Status status) {
  return WithKind(std::move(status), pb::ERROR_STALE, pb::ROLE_COORDINATOR);
}

}  // namespace

Core::Worker* Core::Find(WorkerId worker, Incarnation incarnation) {
  const auto it = workers_.find(worker);
  return it != workers_.end() && it->second.member.incarnation == incarnation ? &it->second
                                                                              : nullptr;
}

void Core::On(event::Register& e) {
  action::AnswerRegister answer = {.call = e.call};
  if (closed_) {
    answer.status = absl::UnavailableError("the coordinator is shutting down");
    return Do(std::move(answer));
  }
  if (absl::Status understood = CheckProtocol(e.request); !understood.ok()) {
    Note(Level::kWarning, understood.message());
    answer.status = Refusal(std::move(understood));
    return Do(std::move(answer));
  }
  const auto registered = membership_.Register(e.request, now_);
  if (!registered.ok()) {
    answer.status = Refusal(registered.status());
    return Do(std::move(answer));
  }
  const Member& member = registered->member;
  if (!registered->known) {
    if (registered->replaced) {
      // Nobody knows that the older process is dead: what it may still do ends with its lease.
      if (member.role == pb::ROLE_PSSERVER) {
        old_leases_.Add(registered->replaced->pid,
                        registered->replaced->last_heartbeat + options_.timeout);
      }
      Lose(*registered->replaced, "replaced", "another process took its place");
    }
    Do(action::MemberJoined{member});
    if (member.role == pb::ROLE_WORKER) {
      workers_[WorkerId(member.index)].member = member;
      inputs_.WorkerJoined(WorkerId(member.index));
      scan_ = true;
      InstallOn(WorkerId(member.index));
    } else {
      Act(recovery_.ServerReady(member.index));
    }
  }
  answer.index = member.index;
  answer.generation = least_generation();
  answer.heartbeat = HeartbeatInterval();
  Do(std::move(answer));
}

// Heartbeats of all daemons together are no more than so many a second, as long as several may be
// late before a daemon counts as lost.
absl::Duration Core::HeartbeatInterval() const {
  constexpr absl::Duration kBetween = absl::Microseconds(2500);
  const size_t there = membership_.Count(pb::ROLE_WORKER) + membership_.Count(pb::ROLE_PSSERVER);
  // Those that are still to come, too: a daemon is told when it registers.
  const size_t daemons = std::max<size_t>(there, options_.workers + options_.servers);
  return std::max(options_.heartbeat,
                  std::min(kBetween * static_cast<int64_t>(daemons), options_.timeout / 4));
}

void Core::On(event::Heartbeat& e) {
  action::AnswerHeartbeat answer = {.call = e.call};
  if (JobId(e.request.job()) != options_.job) {
    answer.status =
        RegisterAgain(absl::NotFoundError("this coordinator runs another job; register again"));
  } else if (CoordinatorEpoch(e.request.epoch()) > options_.epoch) {
    answer.status =
        RegisterAgain(absl::NotFoundError("a newer coordinator has taken over; register there"));
    NoteEpoch(CoordinatorEpoch(e.request.epoch()));
  } else {
    answer.status = RegisterAgain(membership_.Heartbeat(e.request, now_));
    if (answer.status.ok() && e.request.role() == pb::ROLE_PSSERVER) {
      Act(update_pause_.ServerReports(e.request.index(),
                                      {e.request.applied_bytes(), e.request.most_applied_bytes()}));
    }
    answer.low_water = low_water();
    answer.generation = least_generation();
    answer.dismissed = dismissed_;
  }
  Do(std::move(answer));
}

void Core::NoteEpoch(CoordinatorEpoch epoch) {
  newest_epoch_ = std::max(newest_epoch_, epoch);
  if (!superseded()) return;
  Act(commit_.Superseded());
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_STALE);
  detail.set_epoch(newest_epoch_.value());
  End(WithDetail(
      absl::AbortedError(absl::StrCat("a newer coordinator (epoch ", newest_epoch_.value(),
                                      ") has taken over this job; this one, of epoch ",
                                      options_.epoch.value(), ", ends without saving anything")),
      detail));
}

void Core::On(event::Leave& e) {
  if (e.request.role() == pb::ROLE_PSSERVER) return ServerLeaves(e);
  if (e.request.role() != pb::ROLE_WORKER) return Do(action::AnswerLeave{e.call});
  const WorkerId id(e.request.index());
  Worker* const worker = Find(id, Incarnation(e.request.incarnation()));
  if (worker != nullptr && closed_) Remove(Member(worker->member), "left", e.request.reason());
  if (worker == nullptr || closed_) return Do(action::AnswerLeave{e.call});
  // It runs nothing any more, but its last results may still be on their way. Without them their
  // steps would run again.
  queue_.WorkerDrains(id);
  worker->leaving.push_back(e.call);
  workers_leaving_.insert(id);
  worker->why_it_leaves = e.request.reason();
  if (worker->leaves_by == absl::InfiniteFuture()) worker->leaves_by = now_ + options_.timeout;
  LeaveIfIdle(id);
}

void Core::LeaveIfIdle(WorkerId id) {
  const auto it = workers_.find(id);
  if (it == workers_.end() || it->second.leaving.empty()) return;
  if (!it->second.runs.empty() && now_ < it->second.leaves_by) return;
  const Member member = it->second.member;
  const std::string reason = it->second.why_it_leaves;
  Remove(member, "left", reason);
}

void Core::ServerLeaves(event::Leave& e) {
  // What these do to the servers' state is whole when a checkpoint is taken of it.
  const bool in_a_round = round_decided() && !MU_BROKEN(leave_in_a_round);
  if (work_.kind == Work::Kind::kConfigure || work_.kind == Work::Kind::kLoad || in_a_round)
    return leaves_.push_back(std::move(e));
  const auto member = membership_.Find(pb::ROLE_PSSERVER, e.request.index());
  const bool known =
      member.has_value() && member->incarnation == Incarnation(e.request.incarnation());
  if (!known || closed_ || !recovery_enabled_ || !recovery_.started()) {
    if (known) Remove(*member, "left", e.request.reason());
    return Do(action::AnswerLeave{e.call});
  }
  Note(Level::kInfo, "server ", member->index, " wants to leave (", e.request.reason(),
       "): a checkpoint is taken first");
  leaving_[member->index].push_back(e.call);
  if (recovery_.serving()) {
    leave_opened_ = true;
    // All servers are about to end what they save, with an error that nobody tries again after. One
    // that is taken for another server's leave serves this one as well.
    Act(commit_.ServerLeaves());
  }
  Act(recovery_.ServerLeaving(member->index));
}

void Core::AnswerLeaving(uint32_t server) {
  const auto calls = leaving_.extract(server);
  if (calls.empty()) return;
  for (const CallId call : calls.mapped()) Do(action::AnswerLeave{call});
}

void Core::On(event::DaemonDied& e) {
  old_leases_.Ended(e.pid);
  FinishRestore();
  bool known = false;
  for (const Member& member : membership_.All()) {
    if (member.pid != e.pid) continue;
    known = true;
    Remove(member, "died", e.message);
  }
  if (!known) failures_.DaemonEnded(e.pid, e.message);
}

void Core::Remove(const Member& member, const std::string& kind, const std::string& message) {
  if (const auto lost = membership_.Remove(member)) Lose(*lost, kind, message);
}

void Core::Lose(const Member& member, const std::string& kind, const std::string& message) {
  const bool is_worker = member.role == pb::ROLE_WORKER;
  if (!closed_) {
    MemberFailure failure = {{}, member.role, member.index, kind, Seconds(), message};
    failure.detection_latency_seconds = absl::ToDoubleSeconds(now_ - member.last_progress);
    failure.pid = member.pid;
    if (is_worker) {
      failures_.WorkerLost(std::move(failure), queue_.RunningOn(WorkerId(member.index)));
    } else {
      failures_.ServerLost(std::move(failure), OpensRecovery());
    }
  }
  Do(action::MemberLost{member, kind, message, kind == "silent" || kind == "hangs"});
  if (is_worker) {
    LoseWorker(member, kind, message);
  } else {
    LoseServer(member, kind, message);
  }
  dispatch_ = true;
}

void Core::LoseWorker(const Member& member, const std::string& kind, const std::string& message) {
  const WorkerId id(member.index);
  if (Find(id, member.incarnation) == nullptr) return;
  for (const CallId call : workers_.at(id).leaving) Do(action::AnswerLeave{call});
  workers_.erase(id);
  workers_leaving_.erase(id);
  installations_.Lost(id);
  if (kind != "left") FailIfDeadly(member, message);
  if (!MU_BROKEN(requeueing)) queue_.WorkerLost(id);
  inputs_.WorkerLost(id);
  for (auto& [scan, its] : scans_) its.files.WorkerLost(id, now_);
  scan_ = true;
  for (auto& [dataset, leases] : leases_) leases.Forget(id);
  if (cancellation_.Quiet(id, member.incarnation)) FenceWhenWorkersAreQuiet();
}

void Core::InstallOn(WorkerId id) {
  if (!closed_ && !IsAside(id)) installations_.Want(id);
}

void Core::On(event::Installed& e) {
  const Worker* const worker = Find(e.worker, e.incarnation);
  if (worker == nullptr || closed_) return;
  const auto sent = installations_.Answered(e.worker);
  if (!sent.has_value()) return;
  if (!e.error.ok()) {
    if (e.error.kind != pb::ERROR_USER || sent->part.kind != InstallPart::Kind::kFunction)
      return InstallFailed(*worker, sent->at, e.error);
    // The worker is as good as before for all other functions.
    FunctionRefused(e.worker, Fingerprint(sent->part.id), e.error.status);
  }
  const bool is_new = installations_.installed(e.worker) == 0;
  if (installations_.Took(e.worker)) {
    if (is_new) failures_.WorkerReady(Seconds());
    queue_.WorkerReady(e.worker, installations_.installed(e.worker));
    dispatch_ = true;
  }
  InstallOn(e.worker);
}

void Core::InstallFailed(const Worker& worker, absl::Time sent, const CallError& error) {
  const WorkerId id(worker.member.index);
  const bool wrong = error.kind == pb::ERROR_USER;
  installations_.Failed(id, wrong);
  NoteEpoch(error.epoch);
  if (error.answered()) {
    // What was sent may be good: others show whether it is. If nobody is left, everything has ended
    // with the error.
    WorkerCannot(worker, 0, error).IgnoreError();
    dispatch_ = true;
  } else if (wrong) {
    // What was created is wrong (a dataset, say): no other worker would take it either.
    Note(Level::kError, "worker ", id.value(), ": ", StatusText(error.status));
    BeginCancel(error.status);
  } else if (sent >= awake_since_) {
    // It was not under way while this process stood still.
    return Remove(Member(worker.member), "unreachable", std::string(error.status.message()));
  }
  InstallOn(id);
}

void Core::FunctionRefused(WorkerId worker, Fingerprint function, const absl::Status& error) {
  if (!refused_.try_emplace(function, error).second) return;
  Note(Level::kError, "worker ", worker.value(), ": ", error.ToString());
  // What nobody has scheduled yet is told whoever joins training, and whoever schedules it.
  const std::set<GroupId> users = queue_.UsersOf(function);
  for (const GroupId group : users) {
    if (group != GroupId()) FailGroup(group, error);
  }
  if (users.empty() || users.contains(GroupId())) BeginCancel(error);
}

}  // namespace mu
