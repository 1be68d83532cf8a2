#include "tests/sim/server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster.h"

namespace mu::sim {

Server::Server(Cluster* cluster, Slot slot, uint64_t incarnation, uint8_t index)
    : cluster_(cluster),
      slot_(slot),
      incarnation_(incarnation),
      index_(index),
      daemon_(cluster, slot, incarnation, index),
      admission_(cluster->clock(), /*leased=*/!cluster->scenario().broken.leases,
                 /*registers=*/true) {}

void Server::Handle(const Message& message) {
  Time sent = 0;
  switch (message.kind) {
    case Kind::kTick:
      return daemon_.Tick();
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
    case Kind::kSave:
      return Save(message);
    case Kind::kWritten:
      return Written();
    case Kind::kRestore:
      return Restore(message);
    case Kind::kLoaded:
      return Loaded(message);
    case Kind::kFence:
      return Fence(message);
    default:
      return;
  }
}

void Server::OnMembership(const Message& reply, Time sent) {
  if (reply.request == Kind::kRegister) {
    if (!admission_.SetIdentity(kJob, reply.epoch, index_).ok()) return cluster_->Exit(slot_);
    epoch_ = std::max(epoch_, reply.epoch);
  } else {
    RaiseLowWater(reply.low_water);
  }
  admission_.RenewLease(sent, absl::Nanoseconds(kLease),
                        cluster_->scenario().broken.old_generations ? 0 : reply.generation);
}

const pb::RequestContext& Server::Context(const Message& request) {
  const bool fenced = !cluster_->scenario().broken.fencing;
  context_.set_job(kJob);
  context_.set_epoch(fenced ? request.epoch : std::max(epoch_, request.epoch));
  context_.set_generation(fenced ? request.generation : std::max(generation_, request.generation));
  context_.set_low_water(request.low_water);
  return context_;
}

void Server::Refuse(const Message& request, const absl::Status& status) {
  cluster_->Reply(request,
                  {.code = KindOf(status) == pb::ERROR_STALE ? Code::kStale : Code::kMachine});
}

void Server::RaiseLowWater(uint64_t function) {
  ledger_.RaiseLowWater(function);
  inherited_.RaiseLowWater(function);
}

uint64_t Server::Updates() const {
  uint64_t updates = 0;
  for (const Partition& partition : partitions_) updates += partition.held ? partition.counter : 0;
  return updates;
}

void Server::Configure(const Message& request) {
  if (absl::Status status = admission_.AdmitConfigure(Context(request), index_); !status.ok()) {
    return Refuse(request, status);
  }
  epoch_ = std::max(epoch_, request.epoch);
  if (!configured_) generation_ = request.generation;
  if (!configured_ || (placement_ != request.steps && request.epoch > configured_epoch_)) {
    // A newer coordinator may place partitions in another way; it restores all servers.
    saving_cancelled_ = true;
    partitions_ = Partitions();
    ledger_.Clear();
    inherited_ = InheritedMemory();
    for (uint32_t p = 0; p < cluster_->scenario().partitions; ++p)
      partitions_[p].held = p % request.steps == index_;
    configured_ = true;
    placement_ = request.steps;
  } else if (placement_ != request.steps) {
    return cluster_->Reply(request, {.code = Code::kStale});
  }
  configured_epoch_ = std::max(configured_epoch_, request.epoch);
  admission_.Configured(context_);
  cluster_->Reply(request, {});
}

void Server::Pull(const Message& request) {
  const auto ticket = admission_.Admit(Context(request));
  if (!ticket.ok()) return Refuse(request, ticket.status());
  cluster_->Reply(request, {});
}

void Server::Push(const Message& request) {
  auto ticket = admission_.Admit(Context(request));
  if (!ticket.ok()) return Refuse(request, ticket.status());
  RaiseLowWater(request.low_water);
  const PushId id{request.function, request.step, 0};
  const Held held = Inherited(request);
  switch (ledger_.Begin(id)) {
    case Ledger::Answer::kFirst:
      work_.push_back({request, *std::move(ticket), held, {}});
      cluster_->SetTimer(slot_, cluster_->Between(0, 300 * kMicrosecond),
                         {.kind = Kind::kApply, .call = request.call});
      return;
    case Ledger::Answer::kRepeat:
      if (cluster_->scenario().broken.deduplication) {
        for (Partition& partition : partitions_) {
          if (!partition.held) continue;
          ++partition.counter;
          partition.effects.push_back(
              {static_cast<uint32_t>(request.function), request.records[0], request.step});
        }
      }
      return Acknowledge(request, held, true);
    case Ledger::Answer::kInProgress:
      for (Work& work : work_) {
        if (work.request.function == request.function && work.request.step == request.step) {
          work.waiting.push_back({request, held});
          return;
        }
      }
      return cluster_->truth().Fail("a push in progress that nobody works on");
    case Ledger::Answer::kStale:
      return cluster_->Reply(request, {.code = Code::kStale});
    case Ledger::Answer::kFull:
      return cluster_->Reply(request, {.code = Code::kMachine});
  }
}

void Server::Apply(uint32_t call) {
  const auto it = std::find_if(work_.begin(), work_.end(),
                               [&](const Work& w) { return w.request.call == call; });
  if (it == work_.end()) return;  // a restore has seen to it
  std::list<Work> work;
  work.splice(work.begin(), work_, it);
  Finish(work.front());
}

void Server::Finish(Work& work) {
  const Message& request = work.request;
  const PushId id{request.function, request.step, 0};
  const absl::Status status = admission_.CheckLease();
  bool changed = false;
  if (status.ok()) {
    for (uint32_t p = 0; p < partitions_.size(); ++p) {
      Partition& partition = partitions_[p];
      if (!partition.held || work.held[p]) continue;
      changed = dirty_ = true;
      ++partition.counter;
      partition.effects.push_back(
          {static_cast<uint32_t>(id.function), request.records[0], request.step});
    }
  }
  // Of a push that was inherited as a whole nothing need be remembered once more.
  ledger_.Finish(id, status.ok() && changed);
  if (!status.ok()) {
    Refuse(request, status);
    for (const auto& [waiting, held] : work.waiting) Refuse(waiting, status);
    return;
  }
  Acknowledge(request, work.held, !changed);
  for (const auto& [waiting, held] : work.waiting) Acknowledge(waiting, held, true);
}

void Server::Fence(const Message& request) {
  if (absl::Status status = admission_.AdmitControl(Context(request)); !status.ok())
    return Refuse(request, status);
  const auto ticket = admission_.AdmitFence(context_);
  if (!ticket.ok() && !cluster_->scenario().broken.late_fences)
    return Refuse(request, ticket.status());
  RaiseLowWater(request.low_water);
  // It waits for what is under way below the mark, which ends now.
  for (auto it = work_.begin(); it != work_.end();) {
    if (it->request.function < request.low_water) {
      Finish(*it);
      it = work_.erase(it);
    } else {
      ++it;
    }
  }
  cluster_->Reply(request, {});
}

Server::Held Server::Inherited(const Message& push) const {
  Held held{};
  for (uint32_t p = 0; p < partitions_.size(); ++p)
    held[p] = inherited_.Contains(KeyOf(p), {push.function, push.step, 0});
  return held;
}

void Server::Acknowledge(const Message& request, const Held& held, bool repeated) {
  if (absl::Status status = admission_.CheckLease(); !status.ok()) return Refuse(request, status);
  Message reply{.code = Code::kOk, .repeated = repeated};
  for (uint32_t p = 0; p < partitions_.size(); ++p) {
    if (!partitions_[p].held) continue;
    if (held[p]) {
      ++reply.step_inherited[index_];
    } else {
      ++reply.step_updates[index_];
    }
  }
  cluster_->truth().Acknowledged(index_, incarnation_, request, repeated);
  cluster_->Reply(request, reply);
}

// As psserver/saves.cc: one at a time, repeats of a call get its result, a newer coordinator's goes
// first.
void Server::Save(const Message& request) {
  if (const auto ticket = admission_.Admit(Context(request)); !ticket.ok())
    return Refuse(request, ticket.status());
  if (saved_attempt_ == request.attempt) {
    return cluster_->Reply(request, {.checkpoint = request.checkpoint, .updates = saved_updates_});
  }
  if (saving_) {
    if (saving_->attempt != request.attempt && request.epoch > saving_->epoch)
      saving_cancelled_ = true;
    waiting_saves_.push_back(request);
    return;
  }
  auto file = std::make_shared<ServerFile>();
  file->partitions = partitions_;
  file->applied = ledger_.applied();
  file->inherited = inherited_;
  file->updates = Updates();
  saving_ = request;
  saving_cancelled_ = false;
  file_ = std::move(file);
  cluster_->SetTimer(slot_, cluster_->Between(2 * kMillisecond, 30 * kMillisecond),
                     {.kind = Kind::kWritten});
}

void Server::Written() {
  const Message request = *saving_;
  Message reply{.checkpoint = request.checkpoint, .updates = file_->updates};
  Disk& disk = cluster_->disk();
  if (saving_cancelled_) {
    reply.code = Code::kStale;
  } else if (disk.full[index_] > 0) {
    --disk.full[index_];
    reply.code = Code::kDiskFull;
  } else {
    cluster_->WriteFile(request, index_, file_);
    saved_attempt_ = request.attempt;
    saved_updates_ = file_->updates;
  }
  saving_.reset();
  file_.reset();
  cluster_->Reply(request, reply);
  const std::vector<Message> waiting = std::move(waiting_saves_);
  waiting_saves_.clear();
  for (const Message& next : waiting) {
    if (next.attempt == request.attempt) {
      cluster_->Reply(next, reply);
    } else {
      Save(next);
    }
  }
}

void Server::Restore(const Message& request) {
  if (absl::Status status = admission_.AdmitControl(Context(request)); !status.ok())
    return Refuse(request, status);
  epoch_ = std::max(epoch_, request.epoch);
  uint8_t& unreadable = cluster_->disk().unreadable[index_];
  if (!request.keep_state && request.checkpoint != 0 && unreadable > 0) {
    --unreadable;
    return cluster_->Reply(request, {.code = Code::kCannotRead, .generation = request.generation});
  }
  if (!request.keep_state && request.checkpoint != 0 &&
      !cluster_->FilesAreGood(request.checkpoint)) {
    return cluster_->Reply(request, {.code = Code::kBadFile, .generation = request.generation});
  }
  // BeginRestore waits for the requests under way: they end now.
  for (; !work_.empty(); work_.pop_front()) Finish(work_.front());

  saving_cancelled_ = true;
  const auto begun = admission_.BeginRestore(
      context_, request.keep_state ? "keep" : absl::StrCat("checkpoint ", request.checkpoint),
      dirty_, request.keep_state);
  if (!begun.ok()) return Refuse(request, begun.status());
  if (!*begun)
    return cluster_->Reply(request, {.generation = request.generation, .updates = Updates()});
  restoring_ = request;
  generation_ = request.generation;
  cluster_->SetTimer(slot_,
                     request.keep_state ? 0 : cluster_->Between(kMillisecond, 15 * kMillisecond),
                     {.kind = Kind::kLoaded});
}

void Server::Loaded(const Message&) {
  if (!restoring_) return;
  const Message request = *restoring_;
  restoring_.reset();
  if (!request.keep_state && request.checkpoint != 0 &&
      !cluster_->disk().checkpoints.contains(request.checkpoint)) {
    admission_.EndRestore(false);  // somebody has removed it
    return cluster_->Reply(request, {.code = Code::kBadFile, .generation = request.generation});
  }
  if (!request.keep_state) Load(request);
  admission_.EndRestore(true);
  cluster_->Reply(request, {.generation = request.generation, .updates = Updates()});
}

void Server::Load(const Message& request) {
  ledger_.Clear();
  inherited_ = InheritedMemory();
  RaiseLowWater(request.low_water);
  dirty_ = false;
  for (Partition& partition : partitions_) partition = {.held = partition.held};
  if (request.checkpoint == 0) return;
  const Checkpoint& checkpoint = cluster_->disk().checkpoints.at(request.checkpoint);
  for (uint8_t f = 0; f < checkpoint.servers; ++f) {
    const ServerFile& file = *checkpoint.files[f];
    const size_t own = inherited_.Add(file.applied);
    std::vector<size_t> numbers;
    for (const AppliedSteps& memory : file.inherited.memories())
      numbers.push_back(inherited_.Add(memory));
    for (uint32_t p = 0; p < partitions_.size(); ++p) {
      if (!partitions_[p].held || !file.partitions[p].held) continue;
      partitions_[p] = file.partitions[p];
      inherited_.Inherit(KeyOf(p), own);
      for (const size_t memory : file.inherited.MemoriesOf(KeyOf(p)))
        inherited_.Inherit(KeyOf(p), numbers[memory]);
    }
  }
}

}  // namespace mu::sim
