// Registrations, heartbeats and leaves, as the simulated coordinator takes and answers them.
#include <utility>

#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {
namespace {

template <typename Request>
Request From(const Message& message) {
  Request request;
  request.set_role(IsWorkerSlot(message.from) ? pb::ROLE_WORKER : pb::ROLE_PSSERVER);
  request.set_index(message.index);
  request.set_incarnation(message.incarnation);
  return request;
}

}  // namespace

void Coordinator::OnRegister(const Message& message) {
  auto request = From<pb::RegisterRequest>(message);
  request.set_address("sim");
  request.set_pid(message.from);  // the slot: where it is called
  Step(event::Register{CallId(), std::move(request)});
}

void Coordinator::Do(action::AnswerRegister& a) {
  if (!a.status.ok()) {
    return cluster_->Reply(
        *handling_, {.code = absl::IsUnavailable(a.status) ? Code::kMachine : Code::kRefused});
  }
  cluster_->truth().Announced(epoch_, OnWire(a.generation), now());
  cluster_->Reply(*handling_, {.index = static_cast<uint8_t>(a.index),
                               .epoch = epoch_,
                               .generation = OnWire(a.generation)});
}

void Coordinator::OnHeartbeat(const Message& message) {
  auto request = From<pb::HeartbeatRequest>(message);
  request.set_job(kJob);
  request.set_epoch(message.epoch);
  request.set_busy(message.moved > 0);
  request.set_moved_bytes(message.moved);
  Step(event::Heartbeat{CallId(), std::move(request)});
}

void Coordinator::Do(action::AnswerHeartbeat& a) {
  if (!a.status.ok()) return cluster_->Reply(*handling_, {.code = Code::kStale});
  cluster_->truth().Announced(epoch_, OnWire(a.generation), now());
  cluster_->Reply(*handling_, WithContext({.generation = OnWire(a.generation)}));
}

void Coordinator::OnLeave(const Message& message) {
  next_call_ = next_call_.Next();
  leaves_[next_call_] = message;
  Step(event::Leave{next_call_, From<pb::LeaveRequest>(message)});
}

void Coordinator::Do(action::AnswerLeave& a) {
  const auto leave = leaves_.extract(a.call);
  if (!leave.empty()) cluster_->Reply(leave.mapped(), {});
}

void Coordinator::Do(action::MemberJoined& a) {
  const Slot slot = static_cast<Slot>(a.member.pid);
  cluster_->Trace(slot_, IsWorkerSlot(slot) ? "worker " : "server ", a.member.index,
                  " is a member");
  Link& link = a.member.role == pb::ROLE_WORKER ? links_[WorkerId(a.member.index)]
                                                : servers_[a.member.index];
  link = {.incarnation = a.member.incarnation.value(), .slot = slot};
}

void Coordinator::Do(action::MemberLost& a) {
  const bool is_worker = a.member.role == pb::ROLE_WORKER;
  cluster_->Trace(slot_, is_worker ? "worker " : "server ", a.member.index, " is lost: ", a.kind);
  if (a.kind == "hangs") Saw("lost as one that hangs");
  Drop([&](const Call& call) {
    const bool to_worker =
        call.request.kind == Kind::kInstall || call.request.kind == Kind::kCancelBelow;
    return to_worker == is_worker && call.index == a.member.index;
  });
  if (!is_worker) {
    cluster_->truth().StateGivenUp(static_cast<uint8_t>(a.member.index));
    servers_[a.member.index] = Link();
    asking_ = Asking::kNothing;
    return FenceAnswered();
  }
  const auto it = links_.find(WorkerId(a.member.index));
  if (it == links_.end()) return;
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
