// Membership and installation on workers.
#include <algorithm>

#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {
namespace {

absl::Time At(Time time) { return absl::UnixEpoch() + absl::Nanoseconds(time); }
bool IsWorkerSlot(Slot slot) { return slot >= kFirstWorkerSlot && slot < kFirstServerSlot; }
pb::Role RoleOf(Slot slot) { return IsWorkerSlot(slot) ? pb::ROLE_WORKER : pb::ROLE_PSSERVER; }

}  // namespace

void Coordinator::Start() {
  epoch_ = ++cluster_->disk().epoch;
  // A generation is never used by two epochs.
  generation_ = epoch_ * 1000;
  cluster_->Trace(slot_, "starts in epoch ", epoch_);
  cluster_->SetTimer(slot_, kMonitorEvery, {.kind = Kind::kTick});
  cluster_->SetTimer(slot_, cluster_->scenario().checkpoint_every, {.kind = Kind::kCheckpointDue});
}

void Coordinator::OnRegister(const Message& message) {
  register_.set_role(RoleOf(message.from));
  register_.set_address("sim");
  register_.set_incarnation(message.incarnation);
  register_.set_pid(message.from);  // the slot: where it is called
  register_.set_index(message.index);
  const auto registered = membership_.Register(register_, At(cluster_->now()));
  if (!registered.ok()) {
    return cluster_->Reply(
        message,
        {.code = KindOf(registered.status()) == pb::ERROR_STALE ? Code::kStale : Code::kMachine});
  }
  cluster_->Reply(message, {.index = message.index, .epoch = epoch_, .generation = generation_});
  if (registered->known) return;
  if (registered->replaced) MemberLost(*registered->replaced, /*may_serve=*/true);
  cluster_->Trace(slot_, IsWorkerSlot(message.from) ? "worker " : "server ", int{message.index},
                  " is a member");
  if (IsWorkerSlot(message.from)) {
    Link& link = links_[WorkerId(message.index)];
    link = Link();
    link.incarnation = message.incarnation;
    link.slot = message.from;
    return Install();
  }
  ServerLink& server = servers_[message.index];
  server.incarnation = message.incarnation;
  server.slot = message.from;
  server.ready = false;
  server.configured = 0;
  server.leave.reset();
  Monitor();
}

void Coordinator::OnHeartbeat(const Message& message) {
  heartbeat_.set_job(kJob);
  heartbeat_.set_epoch(message.epoch);
  heartbeat_.set_role(RoleOf(message.from));
  heartbeat_.set_index(message.index);
  heartbeat_.set_incarnation(message.incarnation);
  if (!membership_.Heartbeat(heartbeat_, At(cluster_->now())).ok()) {
    return cluster_->Reply(message, {.code = Code::kNotMember});
  }
  cluster_->Reply(message, WithContext({.generation = generation_}));
}

void Coordinator::OnLeave(const Message& message) {
  if (IsWorkerSlot(message.from)) {
    const auto link = links_.find(WorkerId(message.index));
    if (link != links_.end() && link->second.incarnation == message.incarnation &&
        !link->second.runs.empty()) {
      // Its last results may still be on their way: it will ask again.
      return queue_.WorkerDrains(link->first);
    }
    if (auto left =
            membership_.Remove(pb::ROLE_WORKER, message.index, Incarnation(message.incarnation))) {
      WorkerLost(*left);
      Dispatch();
    }
    return cluster_->Reply(message, {});
  }
  ServerLink& server = servers_[message.index];
  if (server.incarnation != message.incarnation) return cluster_->Reply(message, {});
  server.leave = message;
  Act(recovery_.ServerLeaving(message.index));
}

void Coordinator::OnDaemonDied(const Message& message) {
  for (const Member& member : membership_.All()) {
    if (member.pid != message.index || member.incarnation != Incarnation(message.incarnation))
      continue;
    if (auto lost = membership_.Remove(member.role, member.index, member.incarnation)) {
      MemberLost(*lost, /*may_serve=*/false);
    }
  }
  Dispatch();
}

void Coordinator::OnConnectionLost(const Message& message) {
  for (const auto& [id, link] : links_) {
    if (link.incarnation != message.incarnation || link.runs.empty()) continue;
    // The streams of its runs end; the first one that says so makes the coordinator drop the
    // worker.
    return OnRunEnded({.code = Code::kMachine,
                       .function = link.runs.front().first.value(),
                       .run = link.runs.front().second.value()});
  }
}

void Coordinator::MemberLost(const Member& member, bool may_serve) {
  if (member.role == pb::ROLE_WORKER) return WorkerLost(member);
  ServerLost(member, may_serve);
}

void Coordinator::WorkerLost(const Member& member) {
  const WorkerId id(member.index);
  const auto it = links_.find(id);
  if (it == links_.end() || Incarnation(it->second.incarnation) != member.incarnation) return;
  cluster_->Trace(slot_, "worker ", member.index, " is lost");
  for (const auto& [function, run] : it->second.runs) {
    cluster_->Send(WithContext({.to_incarnation = it->second.incarnation,
                                .kind = Kind::kCancelRun,
                                .to = it->second.slot,
                                .function = function.value(),
                                .run = run.value()}));
  }
  links_.erase(it);
  if (!cluster_->scenario().broken.requeueing) queue_.WorkerLost(id);
  leases_->Forget(id);
}

void Coordinator::ServerLost(const Member& member, bool may_serve) {
  cluster_->Trace(slot_, "server ", member.index, " is lost");
  ServerLink& server = servers_[member.index];
  server = ServerLink();
  // Its lease counts from when it had sent the heartbeat, which was before it arrived.
  if (may_serve) {
    leases_out_ = std::max<Time>(
        leases_out_, absl::ToInt64Nanoseconds(member.last_heartbeat - absl::UnixEpoch()) + kLease);
  }
  begin_round_ = false;
  Act(commit_.ServerLost(member.index));
  Act(recovery_.ServerLost(member.index));
}

void Coordinator::Replace(uint32_t server) {
  const auto expelled = membership_.Expel(
      pb::ROLE_PSSERVER, server, Incarnation(servers_[server].incarnation), "it cannot read");
  if (expelled.has_value()) ServerLost(*expelled, /*may_serve=*/true);
}

void Coordinator::Monitor() {
  for (const Member& member : membership_.Expire(At(cluster_->now())))
    MemberLost(member, /*may_serve=*/false);
  queue_.Tick(static_cast<double>(cluster_->now()) / 1e9);
  CheckCalls();
  CheckCancel();
  FinishRestores();
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    ServerLink& server = servers_[s];
    if (server.incarnation == 0 || server.ready) continue;
    server.ready = true;
    Act(recovery_.ServerReady(s));
  }
  if (beginning_) {
    TryBegin();
  } else {
    Act(recovery_.Retry());
  }
  if (leave_wanted_) TakeCheckpoint();
  Install();
  Dispatch();
  if (done_at_ != 0 && cluster_->now() >= done_at_ && !paused_ && !cancel_)
    cluster_->JobDone(slot_);
}

void Coordinator::Install() {
  if (routing_ == 0) return;
  for (auto& [id, link] : links_) {
    if (link.installed == routing_) continue;
    if (link.install_call != 0) {
      if (cluster_->now() < link.install_until) continue;
    }
    link.install_call = cluster_->NextCall();
    link.installing = routing_;
    link.install_until = cluster_->now() + kCallTimeout;
    cluster_->Send(WithContext({.kind = Kind::kInstall,
                                .to = link.slot,
                                .index = static_cast<uint8_t>(id.value()),
                                .call = link.install_call,
                                .generation = generation_,
                                .routing = routing_,
                                .routing_place = routing_place_}));
  }
}

void Coordinator::OnInstalled(const Message& reply) {
  for (auto& [id, link] : links_) {
    if (link.install_call != reply.call) continue;
    link.install_call = 0;
    if (reply.code != Code::kOk) {
      if (reply.epoch > epoch_) return Superseded();
      return;  // the monitor tries again
    }
    link.installed = link.installing;
    queue_.WorkerReady(id, link.installed);
    Install();
    return Dispatch();
  }
}

}  // namespace mu::sim
