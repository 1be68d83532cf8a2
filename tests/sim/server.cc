#include "tests/sim/server.h"

#include <algorithm>

#include "tests/sim/cluster.h"

namespace mu::sim {

Server::Server(Cluster* cluster, Slot slot, uint64_t incarnation, uint8_t index)
    : cluster_(cluster),
      slot_(slot),
      incarnation_(incarnation),
      index_(index),
      daemon_(cluster, slot, incarnation, index),
      core_({.leased = true, .registers = true}) {}

void Server::Handle(const Message& message) {
  Time sent = 0;
  switch (message.kind) {
    case Kind::kTick:
      return daemon_.Tick(Moving() ? moved_ : 0);
    case Kind::kReply:
      if (daemon_.OnReply(message, &sent)) OnMembership(message, sent);
      return;
    case Kind::kConfigure:
      return Configure(message);
    case Kind::kPull:
      return Pull(message);
    case Kind::kPush:
      return Push(message);
    case Kind::kApply:
      return Apply(message.call);
    case Kind::kApplied:
      return Applied(message.call);
    case Kind::kSave: {
      const PsCallId call(++last_call_);
      return Save(call, message, core_.AskSave(Now(), Context(message), message.attempt, call));
    }
    case Kind::kPrepared:
      return Prepared();
    case Kind::kWritten:
      return DiskHangs(message) ? void() : Written();
    case Kind::kRestore:
      return Restore(message, /*verified=*/false);
    case Kind::kVerified:
      return DiskHangs(message) ? void() : Verified(message.call);
    case Kind::kLoaded:
      return DiskHangs(message) ? void() : Loaded();
    case Kind::kFence:
      return Fence(message);
    default:
      return;
  }
}

Time Server::Now() const { return cluster_->now(); }
void Server::Saw(ServerStep step) { cluster_->seen().Saw(step); }

const pb::RequestContext& Server::Context(const Message& request) {
  context_.set_job(kJob);
  context_.set_epoch(request.epoch);
  context_.set_generation(request.generation);
  context_.set_low_water(request.low_water);
  return context_;
}

void Server::Refuse(const Message& request, const absl::Status& status) {
  cluster_->Reply(request,
                  {.code = KindOf(status) == pb::ERROR_STALE ? Code::kStale : Code::kMachine});
}

size_t Server::remembered() const {
  const PushMemory& pushes = core_.pushes();
  return pushes.ledger().entries() +
         (pushes.inherited() == nullptr ? 0 : pushes.inherited()->entries());
}

uint64_t Server::Updates() const {
  uint64_t updates = 0;
  for (const Partition& partition : partitions_) updates += partition.held ? partition.counter : 0;
  return updates;
}

uint32_t Server::HeldPartitions() const {
  return static_cast<uint32_t>(std::count_if(partitions_.begin(), partitions_.end(),
                                             [](const Partition& p) { return p.held; }));
}

void Server::OnMembership(const Message& reply, Time sent) {
  if (reply.request == Kind::kRegister) {
    if (!core_.SetIdentity(kJob, reply.epoch, index_).ok()) return cluster_->Exit(slot_);
  } else {
    core_.RaiseLowWater(reply.low_water);
  }
  core_.RenewLease(sent, absl::Nanoseconds(kLease), reply.generation);
}

void Server::Configure(const Message& request) {
  if (absl::Status status = core_.AdmitConfigure(Context(request), index_); !status.ok())
    return Refuse(request, status);
  const auto may_replace = core_.BeginConfigure(context_);
  if (!may_replace.ok()) return Refuse(request, may_replace.status());
  const bool contradiction = placement_ != 0 && placement_ != request.steps;
  if (contradiction && !*may_replace) return cluster_->Reply(request, {.code = Code::kStale});
  if (contradiction) Saw(ServerStep::kPlacedAnew);
  if (placement_ == 0 || contradiction) {
    partitions_ = Partitions();
    for (uint32_t p = 0; p < cluster_->scenario().partitions; ++p)
      partitions_[p].held = p % request.steps == index_;
    placement_ = request.steps;
  }
  core_.EndConfigure(context_, contradiction);
  cluster_->Reply(request, {});
}

void Server::Pull(const Message& request) {
  if (absl::Status status = core_.Admit(Now(), Context(request)); !status.ok())
    return Refuse(request, status);
  core_.Leave();
  cluster_->Reply(request, {});
}

void Server::Push(const Message& request) {
  const auto for_each = [&](PushPartitions::Visit visit) {
    for (uint32_t p = 0; p < partitions_.size(); ++p) {
      if (partitions_[p].held) visit(KeyOf(p));
    }
  };
  const uint32_t id = ++last_call_;
  PushBegun begun = core_.BeginPush(Now(), Context(request), {request.function, request.step, 0},
                                    {HeldPartitions(), for_each}, PsCallId(id));
  switch (begun.step) {
    case PushBegun::Step::kAnswer:
      return Acknowledge(request, begun.answer);
    case PushBegun::Step::kWait:
      Saw(ServerStep::kPushWaitsForFirst);
      waiting_pushes_.emplace_back(PsCallId(id), request);
      return;
    case PushBegun::Step::kApply:
      work_.push_back({id, request, std::move(begun.push)});
      cluster_->SetTimer(slot_, cluster_->Between(0, 300 * kMicrosecond),
                         {.kind = Kind::kApply, .call = id});
  }
}

std::list<Server::Work>::iterator Server::Find(uint32_t id) {
  return std::find_if(work_.begin(), work_.end(), [&](const Work& work) { return work.id == id; });
}

void Server::Apply(uint32_t id) {
  const auto work = Find(id);
  const PushEntered entered = core_.Enter(Now(), &work->push);
  switch (entered.step) {
    case PushEntered::Step::kWait:
      Saw(ServerStep::kPushWaitsForCut);
      at_gate_.push_back(id);
      return;
    case PushEntered::Step::kSkip:
      Saw(ServerStep::kPushWhollyInherited);
      return EndPush(work, entered.status);
    case PushEntered::Step::kRefuse:
      Saw(ServerStep::kPushRefusedAtGate);
      return EndPush(work, entered.status);
    case PushEntered::Step::kApply:
      if (work->push.inherited != nullptr) Saw(ServerStep::kPushPartlyInherited);
      break;
  }
  const Message& request = work->request;
  for (uint32_t p = 0; p < partitions_.size(); ++p) {
    Partition& partition = partitions_[p];
    if (!partition.held || work->push.IsInherited(KeyOf(p))) continue;
    ++partition.counter;
    partition.effects.push_back(
        {static_cast<uint32_t>(request.function), request.records[0], request.step});
  }
  // It takes its time, now and then.
  if (cluster_->Between(0, 7) > 0) return EndPush(work, absl::OkStatus());
  cluster_->SetTimer(slot_, cluster_->Between(0, 5 * kMillisecond),
                     {.kind = Kind::kApplied, .call = id});
}

void Server::Applied(uint32_t id) { EndPush(Find(id), absl::OkStatus()); }

void Server::EndPush(std::list<Work>::iterator work, const absl::Status& status) {
  const PushEnded ended = core_.EndPush(Now(), work->push, status);
  if (status.ok() && !ended.answer.status.ok()) Saw(ServerStep::kPushNotAcknowledged);
  Acknowledge(work->request, ended.answer);
  work_.erase(work);
  for (const auto& [call, answer] : ended.waiting) {
    const auto it = std::find_if(waiting_pushes_.begin(), waiting_pushes_.end(),
                                 [&, c = call](const auto& waiting) { return waiting.first == c; });
    Acknowledge(it->second, answer);
    waiting_pushes_.erase(it);
  }
  GoOn();
}

void Server::Acknowledge(const Message& request, const PushAnswer& answer) {
  if (!answer.status.ok()) return Refuse(request, answer.status);
  if (answer.repeated) Saw(ServerStep::kPushRepeated);
  Message reply{.repeated = answer.repeated};
  reply.step_updates[index_] = static_cast<uint8_t>(answer.counts.updates);
  reply.step_inherited[index_] = static_cast<uint8_t>(answer.counts.inherited);
  cluster_->truth().Acknowledged(index_, incarnation_, request, answer.repeated);
  cluster_->Reply(request, reply);
}

void Server::Fence(const Message& request) {
  if (absl::Status status = core_.BeginFence(Now(), Context(request)); !status.ok())
    return Refuse(request, status);
  fences_.push_back(request);
  if (!core_.FenceHolds(request.low_water)) Saw(ServerStep::kFenceWaits);
  GoOn();
}

void Server::GoOn() {
  std::erase_if(fences_, [&](const Message& fence) {
    if (!core_.FenceHolds(fence.low_water)) return false;
    core_.Leave();
    cluster_->Reply(fence, {});
    return true;
  });
  if (cut_wanted_ && core_.CutMayBeTaken()) TakeCut();
  if (restoring_.has_value() && !restoring_->started && core_.RestoreMayStart()) {
    core_.StartRestore();
    restoring_->started = true;
    ++moved_;
    const Time most = restoring_->request.keep_state ? 0 : 15 * kMillisecond;
    cluster_->SetTimer(slot_, cluster_->Between(0, most), {.kind = Kind::kLoaded});
  }
}

}  // namespace mu::sim
