// Membership: registration, heartbeats, leave, loss.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/base/steady_now.h"
#include "common/obs/log.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

// Another try would be refused as well.
absl::Status Refusal(absl::Status status) {
  return WithKind(std::move(status), pb::ERROR_USER, pb::ROLE_COORDINATOR);
}

absl::Status RegisterAgain(absl::Status status) {
  return WithKind(std::move(status), pb::ERROR_STALE, pb::ROLE_COORDINATOR);
}

}  // namespace

MethodTable Runtime::Methods() {
  MethodTable methods;
  methods.AddUnary(
      "/muster.Coordinator/Register", RunOn::kTransportThread,
      TypedHandler<pb::RegisterRequest>([this](const auto& r) { return OnRegister(r); }));
  methods.AddUnary(
      "/muster.Coordinator/Heartbeat", RunOn::kTransportThread,
      TypedHandler<pb::HeartbeatRequest>([this](const auto& r) { return OnHeartbeat(r); }));
  methods.AddUnary(
      "/muster.Coordinator/Leave", RunOn::kOwnThread,
      [this](std::shared_ptr<ServerCall> call, Buffer bytes) { OnLeave(std::move(call), bytes); });
  methods.AddUnary("/muster.Coordinator/GetStatus", RunOn::kTransportThread,
                   TypedHandler<pb::GetStatusRequest>([this](const pb::GetStatusRequest&) {
                     return absl::StatusOr<pb::GetStatusReply>(Status());
                   }));
  return methods;
}

absl::StatusOr<pb::RegisterReply> Runtime::OnRegister(const pb::RegisterRequest& request) {
  MutexLock lock(&mutex_);
  if (stopping_) return absl::UnavailableError("the coordinator is shutting down");
  if (departed_.Contains(request.incarnation())) {
    return Refusal(absl::FailedPreconditionError("this daemon has taken its leave"));
  }
  const auto answer = membership_.Register(request, SteadyNow());
  if (!answer.ok()) return Refusal(answer.status());
  const Membership::Registered& registered = *answer;
  const Member& member = registered.member;
  if (!registered.known) {
    if (registered.replaced) {
      // Nobody knows that the older process is dead: what it may still do ends with its lease.
      if (member.role == pb::ROLE_PSSERVER) {
        old_leases_.Add(registered.replaced->pid,
                        registered.replaced->last_heartbeat + options_.timeout);
      }
      MemberLost(*registered.replaced, "replaced", "another process took its place");
    }
    MU_LOG(INFO, "{} {} registered from {} (pid {})",
           member.role == pb::ROLE_WORKER ? "worker" : "server", member.index, member.address,
           member.pid);
    if (member.role == pb::ROLE_WORKER) {
      AddWorker(member);
    } else {
      Act(recovery_.ServerReady(member.index));
    }
    changed_.SignalAll();
  }
  pb::RegisterReply reply;
  reply.set_job(options_.job.value());
  reply.set_epoch(options_.epoch.value());
  reply.set_index(member.index);
  reply.set_heartbeat_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.heartbeat)));
  reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.timeout)));
  reply.set_generation(LeastGeneration().value());
  return reply;
}

absl::StatusOr<pb::HeartbeatReply> Runtime::OnHeartbeat(const pb::HeartbeatRequest& request) {
  MutexLock lock(&mutex_);
  if (request.job() != options_.job.value()) {
    return RegisterAgain(absl::NotFoundError("this coordinator runs another job; register again"));
  }
  if (request.epoch() > options_.epoch.value()) {
    newer_epoch_ = std::max(newer_epoch_, request.epoch());
    changed_.SignalAll();
    return RegisterAgain(absl::NotFoundError("a newer coordinator has taken over; register there"));
  }
  MU_RETURN_IF_ERROR(RegisterAgain(membership_.Heartbeat(request, SteadyNow())));
  if (request.role() == pb::ROLE_PSSERVER) {
    Act(update_pause_.ServerReports(request.index(),
                                    {request.applied_bytes(), request.most_applied_bytes()}));
  }
  pb::HeartbeatReply reply;
  reply.set_low_water(queue_.low_water().value());
  reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.timeout)));
  reply.set_generation(LeastGeneration().value());
  return reply;
}

void Runtime::OnLeave(std::shared_ptr<ServerCall> call, const Buffer& bytes) {
  pb::LeaveRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return call->Finish(absl::InvalidArgumentError("the request does not parse as a LeaveRequest"));
  }
  if (request.role() == pb::ROLE_PSSERVER) return LeavingServer(call, request);
  {
    MutexLock lock(&mutex_);
    if (const auto it = links_.find(WorkerId(request.index()));
        it != links_.end() &&
        it->second->member.incarnation == Incarnation(request.incarnation())) {
      // It runs nothing any more, but its last results may still be on their way: what they say
      // would be repeated.
      const std::shared_ptr<WorkerLink> link = it->second;
      queue_.WorkerDrains(link->id);
      const absl::Time until = SteadyNow() + options_.timeout;
      while (!link->gone && !stopping_ && !link->runs.empty() && SteadyNow() < until) {
        changed_.WaitFor(&mutex_, until - SteadyNow());
      }
    }
    if (auto left = membership_.Remove(request.role(), request.index(),
                                       Incarnation(request.incarnation()))) {
      MemberLost(*left, "left", request.reason());
      Dispatch();
    }
  }
  call->Finish(absl::OkStatus(), Buffer(pb::LeaveReply().SerializeAsString()));
}

void Runtime::AddWorker(const Member& member) {
  auto link = std::make_shared<WorkerLink>();
  link->id = WorkerId(member.index);
  link->member = member;
  link->channel = options_.transport->Connect(member.address);
  links_[link->id] = link;
  inputs_.WorkerJoined(link->id);
  link->installer = std::thread([this, link] { InstallLoop(link); });
}

void Runtime::MemberLost(const Member& member, const std::string& kind,
                         const std::string& message) {
  const bool is_worker = member.role == pb::ROLE_WORKER;
  if (!stopping_) {
    MU_LOG(WARN, "{} {} (pid {}, {}) {}: {}", is_worker ? "worker" : "server", member.index,
           member.pid, member.address, kind, message);
    MemberFailure failure = {member.role, member.index, kind, SecondsUp(), message};
    failure.detection_latency_seconds = absl::ToDoubleSeconds(SteadyNow() - member.last_heartbeat);
    failure.pid = member.pid;
    if (is_worker) {
      failures_.WorkerLost(std::move(failure), queue_.RunningOn(WorkerId(member.index)));
    } else {
      failures_.ServerLost(std::move(failure), OpensRecovery());
    }
  }
  if (is_worker) {
    const WorkerId id(member.index);
    const auto it = links_.find(id);
    if (it == links_.end() || it->second->member.incarnation != member.incarnation) return;
    std::shared_ptr<WorkerLink> link = it->second;
    link->gone = true;
    links_.erase(it);
    if (kind != "left") EndIfDeadly(*link, message);
    queue_.WorkerLost(id);
    inputs_.WorkerLost(id);
    ForgetReader(id);
    for (auto& [run, call] : link->runs) call->Cancel();
    if (link->install_call != nullptr) link->install_call->Cancel();
    if (link->cancel_call != nullptr) link->cancel_call->Cancel();
    old_links_.push_back(std::move(link));
    changed_.SignalAll();
    return;
  }
  ServerLost(member, kind, message);
}

void Runtime::SetOnSilent(std::function<void(const Member&)> on_silent) {
  MutexLock lock(&mutex_);
  on_silent_ = std::move(on_silent);
}

bool Runtime::IsMember(int64_t pid) const {
  MutexLock lock(&mutex_);
  const std::vector<Member> members = membership_.All();
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& member) { return member.pid == pid; });
}

void Runtime::DaemonDied(int64_t pid, const std::string& message) {
  MutexLock lock(&mutex_);
  old_leases_.Ended(pid);
  changed_.SignalAll();
  bool known = false;
  for (const Member& member : membership_.All()) {
    if (member.pid != pid) continue;
    known = true;
    if (auto lost = membership_.Remove(member.role, member.index, member.incarnation)) {
      MemberLost(*lost, "died", message);
    }
  }
  if (!known) failures_.DaemonEnded(pid, message);
  Dispatch();
}

void Runtime::LeavingServer(const std::shared_ptr<ServerCall>& call,
                            const pb::LeaveRequest& request) {
  MutexLock lock(&mutex_);
  const auto member = membership_.Find(pb::ROLE_PSSERVER, request.index());
  const bool known =
      member.has_value() && member->incarnation == Incarnation(request.incarnation());
  if (!known || stopping_ || !recovery_enabled_ || !recovery_.started()) {
    if (known) {
      membership_.Remove(member->role, member->index, member->incarnation);
      MemberLost(*member, "left", request.reason());
    }
    return call->Finish(absl::OkStatus(), Buffer(pb::LeaveReply().SerializeAsString()));
  }
  MU_LOG(INFO, "server {} wants to leave ({}): a checkpoint is taken first", member->index,
         request.reason());
  leaving_[request.index()].push_back(call);
  if (recovery_.serving()) leave_opened_ = true;
  Act(recovery_.ServerLeaving(request.index()));
}

}  // namespace mu
