#include "tests/sim/server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/client/applied_full.h"
#include "common/client/too_late.h"
#include "tests/sim/cluster.h"

namespace mu::sim {

Server::Server(Cluster* cluster, Slot slot, uint64_t incarnation)
    : Daemon(cluster, slot, incarnation),
      core_({.leased = true,
             .registers = true,
             .most_remembered = cluster->scenario().most_remembered > 0
                                    ? cluster->scenario().most_remembered
                                    : Ledger::kDefaultMost}) {}

void Server::FillHeartbeat(Message* call) const {
  const Ledger& ledger = core_.pushes().ledger();
  call->applied_bytes = ledger.entries() * AppliedSteps::kEntryBytes;
  call->most_applied_bytes = ledger.most() * AppliedSteps::kEntryBytes;
  call->moved = moving_ > 0 ? moved_ : 0;
}

void Server::HandleRequest(const Message& request) {
  switch (request.kind) {
    case Kind::kConfigure:
      return cluster_->Reply(request, {.status = Configure(request)});
    case Kind::kPull:
      return Pull(request);
    case Kind::kPush:
      return request.round > 0 ? Contribute(request) : Push(request);
    case Kind::kCommitRound:
      return CommitRound(request);
    case Kind::kSave: {
      const PsCallId call(++last_call_);
      return Save(call, request, core_.AskSave(now(), Context(request), request.attempt, call));
    }
    case Kind::kRestore:
      return Restore(request, /*verified=*/false);
    case Kind::kLoadView:
      return LoadView(request);
    case Kind::kDropView:
      return DropView(request);
    case Kind::kFence:
      return Fence(request);
    default:
      return;
  }
}

size_t Server::remembered() const {
  const PushMemory& pushes = core_.pushes();
  return core_.contributions() + pushes.ledger().entries() +
         (pushes.inherited() == nullptr ? 0 : pushes.inherited()->entries());
}

uint64_t Server::Updates() {
  uint64_t updates = 0;
  ForEachHeld([&](uint32_t, const Partition& partition) { updates += partition.counter; });
  return updates;
}

void Server::OnMember(const Message& reply, Time sent) {
  if (reply.request == Kind::kRegister) {
    if (!core_.SetIdentity(kJob, reply.epoch, index_).ok()) return cluster_->Exit(slot_);
  } else {
    core_.RaiseLowWater(reply.low_water);
  }
  core_.RenewLease(sent, absl::Nanoseconds(kLease), reply.generation);
}

absl::Status Server::Configure(const Message& request) {
  MU_RETURN_IF_ERROR(core_.AdmitConfigure(Context(request), index_));
  MU_ASSIGN_OR_RETURN(const bool may_replace, core_.BeginConfigure(context_));
  const bool replaces = may_replace && placement_ != 0 && placement_ != request.steps;
  if (replaces) Saw("placed anew");
  const auto change = replaces          ? DefinitionsChange::kReplaced
                      : placement_ == 0 ? DefinitionsChange::kAdded
                                        : DefinitionsChange::kNone;
  if (placement_ == 0 || replaces) {
    partitions_ = Partitions();
    for (uint32_t p = 0; p < cluster_->scenario().partitions; ++p)
      partitions_[p].held = p % request.steps == index_;
    placement_ = request.steps;
  }
  core_.EndConfigure(context_, change, request.restore_follows);
  return absl::OkStatus();
}

void Server::Pull(const Message& request) {
  if (request.view != 0) return PullView(request);
  Message reply{.status = core_.Admit(now(), Context(request))};
  if (reply.status.ok()) {
    reply.clock = core_.ReadClock(kClock);
    reply.applied = applied_;
    reply.version = Version();
    reply.updates = Updates();
    if (!request.only_reads) cluster_->truth().Pulled(index_, request, partitions_);
    core_.Leave();
  }
  cluster_->Reply(request, reply);
}

void Server::Push(const Message& request) {
  uint32_t held = 0;
  ForEachHeld([&](uint32_t, const Partition&) { ++held; });
  const auto for_each = [&](PushPartitions::Visit visit) {
    ForEachHeld([&](uint32_t p, const Partition&) { visit(KeyOf(p)); });
  };
  PushStaleness staleness;
  if (cluster_->scenario().most_late.has_value())
    staleness = {{{kClock, request.clock}}, cluster_->scenario().most_late};
  const PsCallId call(++last_call_);
  PushBegun begun = core_.BeginPush(now(), Context(request), {request.function, request.step, 0},
                                    {held, for_each}, call, std::move(staleness));
  switch (begun.step) {
    case PushBegun::Step::kAnswer:
      if (IsAppliedFull(begun.answer.status)) Saw("ledger full");
      return Acknowledge(request, begun.answer);
    case PushBegun::Step::kWait:
      Saw("push waits for first");
      waiting_pushes_.emplace_back(call, request);
      return;
    case PushBegun::Step::kApply:
      const Admitted work = work_.insert(work_.end(), {request, std::move(begun.push)});
      After(cluster_->Between(0, 300 * kMicrosecond), "apply", [=, this] { Apply(work); });
  }
}

void Server::Apply(Admitted work) {
  const PushEntered entered = core_.Enter(now(), &work->push);
  switch (entered.step) {
    case PushEntered::Step::kWait:
      Saw("push waits for cut");
      return at_gate_.push_back(work);
    case PushEntered::Step::kSkip:
      Saw("push wholly inherited");
      return EndPush(work, entered.status);
    case PushEntered::Step::kRefuse:
      IsTooLate(entered.status) ? Saw("push too late") : Saw("push refused at gate");
      return EndPush(work, entered.status);
    case PushEntered::Step::kApply:
      if (work->push.inherited != nullptr) Saw("push partly inherited");
      break;
  }
  const Message& request = work->request;
  const uint64_t late = begun_++ - request.applied;
  if (late > cluster_->scenario().most_late.value_or(late)) {
    cluster_->truth().Fail(absl::StrCat("server ", index_, " applies step ", request.step,
                                        " of function ", request.function, ", which is late by ",
                                        late, " updates"));
  }
  ForEachHeld([&](uint32_t p, Partition& partition) {
    if (work->push.IsInherited(KeyOf(p))) return;
    ++partition.counter;
    partition.effects.push_back({static_cast<uint32_t>(request.function), request.step,
                                 request.records[0], static_cast<uint16_t>(request.place)});
  });
  // It takes its time, now and then.
  if (cluster_->Between(0, 7) > 0) return EndPush(work, absl::OkStatus());
  After(cluster_->Between(0, 5 * kMillisecond), "applied",
        [=, this] { EndPush(work, absl::OkStatus()); });
}

void Server::EndPush(Admitted work, const absl::Status& status) {
  const PushEnded ended = core_.EndPush(now(), work->push, status);
  if (work->push.entered) ++applied_;
  if (status.ok() && !ended.answer.status.ok()) Saw("push not acknowledged");
  Acknowledge(work->request, ended.answer);
  work_.erase(work);
  AcknowledgeWaiting(ended);
}

void Server::AcknowledgeWaiting(const PushEnded& ended) {
  for (const auto& [call, answer] : ended.waiting) {
    const auto it = std::find_if(waiting_pushes_.begin(), waiting_pushes_.end(),
                                 [&, c = call](const auto& waiting) { return waiting.first == c; });
    Acknowledge(it->second, answer);
    waiting_pushes_.erase(it);
  }
}

void Server::Acknowledge(const Message& request, const PushAnswer& answer) {
  if (!answer.status.ok()) return cluster_->Reply(request, {.status = answer.status});
  if (answer.repeated) Saw("push repeated");
  Message reply{.repeated = answer.repeated};
  reply.step_updates[index_] = static_cast<uint8_t>(answer.counts.updates);
  reply.step_inherited[index_] = static_cast<uint8_t>(answer.counts.inherited);
  cluster_->truth().Acknowledged(index_, incarnation_, request, answer.repeated, now());
  cluster_->Reply(request, reply);
}

void Server::Fence(const Message& request) {
  if (absl::Status status = core_.BeginFence(now(), Context(request)); !status.ok())
    return cluster_->Reply(request, {.status = status});
  fences_.push_back(request);
  if (!core_.FenceHolds(request.low_water)) Saw("fence waits");
}

void Server::AfterAll() {
  for (const Message& round : std::exchange(rounds_, {})) CommitRound(round);
  if (cut_wanted_ && core_.CutMayBeTaken()) TakeCut();
  std::erase_if(fences_, [&](const Message& fence) {
    if (!core_.FenceHolds(fence.low_water)) return false;
    core_.Leave();
    cluster_->Reply(fence, {});
    return true;
  });
  if (restoring_.has_value() && !loading_ && core_.RestoreMayStart()) {
    core_.StartRestore();
    loading_ = true;
    const bool stays = restoring_->keep_state || is_here_;
    const Time most = stays ? 0 : 15 * kMillisecond;
    const Time delay = cluster_->Between(0, most);
    const auto loaded = [this] { Loaded(); };
    stays || restoring_->checkpoint == 0 ? After(delay, "loaded", loaded)
                                         : AfterFiles(delay, "loaded", loaded);
  }
}

}  // namespace mu::sim
