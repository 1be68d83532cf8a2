// Registrations, heartbeats and leaves, as the simulated coordinator takes and answers them.
#include <utility>

#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {
namespace {

pb::Role RoleOf(Slot slot) { return IsWorkerSlot(slot) ? pb::ROLE_WORKER : pb::ROLE_PSSERVER; }

}  // namespace

void Coordinator::OnRegister(const Message& message) {
  pb::RegisterRequest request;
  request.set_role(RoleOf(message.from));
  request.set_address("sim");
  request.set_incarnation(message.incarnation);
  request.set_pid(message.from);  // the slot: where it is called
  request.set_index(message.index);
  Step(event::Register{CallId(), std::move(request)});
}

void Coordinator::Do(action::AnswerRegister& a) {
  if (!a.status.ok()) {
    return cluster_->Reply(
        *handling_, {.code = KindOf(a.status) == pb::ERROR_STALE ? Code::kStale : Code::kMachine});
  }
  cluster_->Reply(*handling_, {.index = static_cast<uint8_t>(a.index),
                               .epoch = epoch_,
                               .generation = OnWire(a.generation)});
}

void Coordinator::OnHeartbeat(const Message& message) {
  pb::HeartbeatRequest request;
  request.set_job(kJob);
  request.set_epoch(message.epoch);
  request.set_role(RoleOf(message.from));
  request.set_index(message.index);
  request.set_incarnation(message.incarnation);
  request.set_busy(message.moved > 0);
  request.set_moved_bytes(message.moved);
  Step(event::Heartbeat{CallId(), std::move(request)});
}

void Coordinator::Do(action::AnswerHeartbeat& a) {
  if (!a.status.ok()) return cluster_->Reply(*handling_, {.code = Code::kNotMember});
  cluster_->Reply(*handling_, WithContext({.generation = OnWire(a.generation)}));
}

void Coordinator::OnLeave(const Message& message) {
  pb::LeaveRequest request;
  request.set_role(RoleOf(message.from));
  request.set_index(message.index);
  request.set_incarnation(message.incarnation);
  next_call_ = next_call_.Next();
  leaves_[next_call_] = message;
  Step(event::Leave{next_call_, std::move(request)});
}

void Coordinator::Do(action::AnswerLeave& a) {
  const auto leave = leaves_.extract(a.call);
  if (!leave.empty()) cluster_->Reply(leave.mapped(), {});
}

void Coordinator::Do(action::MemberJoined& a) {
  const Slot slot = static_cast<Slot>(a.member.pid);
  cluster_->Trace(slot_, IsWorkerSlot(slot) ? "worker " : "server ", a.member.index,
                  " is a member");
  if (a.member.role == pb::ROLE_WORKER) {
    Link& link = links_[WorkerId(a.member.index)];
    link = Link();
    link.incarnation = a.member.incarnation.value();
    link.slot = slot;
    return;
  }
  ServerLink& server = servers_[a.member.index];
  server = ServerLink();
  server.incarnation = a.member.incarnation.value();
  server.slot = slot;
}

void Coordinator::Do(action::MemberLost& a) {
  const bool is_worker = a.member.role == pb::ROLE_WORKER;
  cluster_->Trace(slot_, is_worker ? "worker " : "server ", a.member.index, " is lost: ", a.kind);
  if (a.kind == "hangs") cluster_->seen().Saw(ServerStep::kHangs);
  if (!is_worker) {
    if (Incarnation(servers_[a.member.index].incarnation) != a.member.incarnation) return;
    cluster_->truth().StateGivenUp(static_cast<uint8_t>(a.member.index));
    servers_[a.member.index] = ServerLink();
    asking_ = Asking::kNothing;
    return;
  }
  const auto it = links_.find(WorkerId(a.member.index));
  if (it == links_.end() || Incarnation(it->second.incarnation) != a.member.incarnation) return;
  for (const auto& [function, run] : it->second.runs) {
    cluster_->Send(WithContext({.to_incarnation = it->second.incarnation,
                                .kind = Kind::kCancelRun,
                                .to = it->second.slot,
                                .function = function.value(),
                                .run = run.value()}));
  }
  links_.erase(it);
}

}  // namespace mu::sim
