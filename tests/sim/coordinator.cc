// Scheduling and results; membership is in coordinator_members.cc, servers' state in
// coordinator_servers.cc.
#include "tests/sim/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster.h"

namespace mu::sim {
namespace {

constexpr size_t kQueueBound = 3;
constexpr uint64_t kDataset = 1;

pb::DatasetProto DatasetOf(const Scenario& scenario) {
  pb::DatasetProto dataset;
  dataset.set_id(kDataset);
  dataset.set_batch_size(1);
  dataset.set_block_records(2);
  dataset.set_shuffle_records(6);
  dataset.set_epochs(scenario.epochs);
  dataset.set_seed(scenario.batches);
  return dataset;
}

}  // namespace

Coordinator::Coordinator(Cluster* cluster, Slot slot)
    : cluster_(cluster),
      slot_(slot),
      expected_servers_(cluster->servers()),
      membership_(
          {expected_servers_, absl::Nanoseconds(kHeartbeatEvery), absl::Nanoseconds(kLease)}),
      leases_(std::make_unique<DataLeases>(DatasetOf(cluster->scenario()),
                                           std::vector<FileLayout>{cluster->scenario().batches})),
      queue_(static_cast<int>(cluster->scenario().in_flight),
             [this](uint64_t, WorkerId worker, uint32_t steps) {
               return leases_->Take(worker, steps);
             },
             {.least_seconds = static_cast<double>(kBackupAfter) / 1e9}),
      recovery_({expected_servers_,
                 cluster->scenario().recover_shard ? RecoveryMode::kShard : RecoveryMode::kAll}) {}

void Coordinator::Handle(const Message& message) {
  switch (message.kind) {
    case Kind::kTick:
      cluster_->SetTimer(slot_, kMonitorEvery, {.kind = Kind::kTick});
      return Monitor();
    case Kind::kRegister:
      return OnRegister(message);
    case Kind::kHeartbeat:
      return OnHeartbeat(message);
    case Kind::kLeave:
      return OnLeave(message);
    case Kind::kDaemonDied:
      return OnDaemonDied(message);
    case Kind::kConnectionLost:
      return OnConnectionLost(message);
    case Kind::kStepResult:
      return OnStepResult(message);
    case Kind::kRunEnded:
      return OnRunEnded(message);
    case Kind::kCheckpointDue:
      TakeCheckpoint();
      return cluster_->SetTimer(slot_, cluster_->scenario().checkpoint_every,
                                {.kind = Kind::kCheckpointDue});
    case Kind::kManifestDue:
      return OnManifestDue(message);
    case Kind::kUserError:
      return UserError();
    case Kind::kReply:
      if (message.request == Kind::kInstall) return OnInstalled(message);
      if (message.request == Kind::kCancelBelow || message.request == Kind::kFence)
        return OnCancelReply(message);
      if (message.request == Kind::kSave) return OnSaved(message.server, message);
      return OnServerReply(message.server, message);
    default:
      return;
  }
}

Message Coordinator::WithContext(Message message) const {
  const Broken& broken = cluster_->scenario().broken;
  message.from = slot_;
  message.epoch = epoch_;
  message.low_water = queue_.low_water().value();
  if (broken.low_water_high)
    message.low_water = states_.empty() ? queue_.next_id().value() : states_.begin()->first.value();
  if (broken.low_water_stuck) message.low_water = 1;
  return message;
}

void Coordinator::Feed() {
  if (beginning_) return;
  while (queue_.queued() < kQueueBound && !leases_->Exhausted()) {
    FunctionWork work;
    work.steps = cluster_->scenario().steps;
    work.dataset = kDataset;
    work.updates = true;
    states_[queue_.Schedule(std::move(work))] = 0;
  }
}

void Coordinator::Dispatch() {
  if (beginning_ || paused_ || cancel_) return;
  Feed();
  std::vector<FunctionId> completed;
  for (const StartRun& start : queue_.Dispatch(&completed)) StartOn(start);
  for (const FunctionId id : completed) states_.erase(id);
  CheckDone();
}

uint16_t Coordinator::RecordOf(const BatchRange& range, uint32_t batch) const {
  uint64_t record = batch;
  for (const auto& block : range.lease->blocks()) {
    if (record < block.count()) {
      return static_cast<uint16_t>(range.lease->epoch() * cluster_->scenario().batches +
                                   block.first() + record);
    }
    record -= block.count();
  }
  cluster_->truth().Fail("a batch beyond its lease");
  return 0;
}

void Coordinator::StartOn(const StartRun& start) {
  const auto found = links_.find(start.worker);
  if (found == links_.end())
    return;  // only with requeueing broken: the queue does not know that the worker is lost
  Link& link = found->second;
  const FunctionQueue::Function& function = *queue_.Find(start.function);
  Message run = WithContext({.kind = Kind::kRun,
                             .to = link.slot,
                             .first_step = static_cast<uint8_t>(start.first_step),
                             .steps = static_cast<uint8_t>(start.steps),
                             .generation = generation_,
                             .function = start.function.value(),
                             .run = start.run.value()});
  size_t step = 0;
  for (const auto& range : function.batches) {
    for (uint32_t i = 0; i < range.batches; ++i)
      run.records[step++] = RecordOf(range, range.first_batch + i);
  }
  if (link.runs.empty()) link.last_news = cluster_->now();
  link.runs.push_back({start.function, start.run});
  cluster_->Send(run);
}

void Coordinator::OnStepResult(const Message& message) {
  const FunctionId id(message.function);
  for (auto& [worker, link] : links_) {
    if (std::find(link.runs.begin(), link.runs.end(), std::make_pair(id, RunId(message.run))) ==
        link.runs.end())
      continue;
    const Time took = cluster_->now() - std::exchange(link.last_news, cluster_->now());
    queue_.StepsTook(worker, id, static_cast<double>(took) / 1e9);
  }
  bool current = false;
  const bool deliver = queue_.StepDone(id, RunId(message.run), message.step, 1, &current);
  if (current) {
    for (uint32_t s = 0; s < kMaxServers; ++s) {
      ledger_.StepDone(s, message.step_updates[s], message.step_inherited[s], deliver);
    }
    cluster_->truth().ResultTaken(epoch_, message.function, message.step);
  }
  if (!deliver) return;
  const auto state = states_.find(id);
  if (state == states_.end()) return;  // of a function that an earlier coordinator had scheduled
  cluster_->truth().Delivered(epoch_, id.value(), message.step);
  ++state->second;
}

void Coordinator::OnRunEnded(const Message& message) {
  const FunctionId id(message.function);
  const RunId run(message.run);
  WorkerId worker;
  Link* link = nullptr;
  for (auto& [candidate, other] : links_) {
    const auto it = std::find(other.runs.begin(), other.runs.end(), std::make_pair(id, run));
    if (it == other.runs.end()) continue;
    other.runs.erase(it);
    worker = candidate;
    link = &other;
    break;
  }
  const FunctionQueue::Function* function = queue_.Find(id);
  if (function == nullptr || function->run != run) {
    queue_.RunEnded(id, run);
    return Dispatch();
  }
  switch (message.code) {
    case Code::kHandedBack:
      if (link != nullptr) queue_.WorkerDrains(worker);
      [[fallthrough]];
    case Code::kOk:
      if (queue_.RunEnded(id, run) == FunctionQueue::Ended::kCompleted) {
        if (const auto state = states_.find(id); state != states_.end()) states_.erase(state);
      }
      return Dispatch();
    case Code::kNotInstalled:
      queue_.RunEnded(id, run);
      if (link != nullptr) {
        link->installed = 0;
        queue_.WorkerReady(worker, 0);
      }
      return Install();
    case Code::kServerGone:
    case Code::kStale:
      if (message.epoch > epoch_) return Superseded();
      queue_.RunEnded(id, run);
      return Dispatch();
    default:
      break;
  }
  if (link != nullptr) {
    // Its connection broke: whatever the process is doing, it must register again.
    if (auto lost =
            membership_.Remove(pb::ROLE_WORKER, worker.value(), Incarnation(link->incarnation)))
      WorkerLost(*lost);
  } else {
    queue_.RunEnded(id, run);
  }
  Dispatch();
}

void Coordinator::StopRuns() {
  queue_.StopRuns();
  for (auto& [worker, link] : links_) {
    for (const auto& [function, run] : link.runs) {
      cluster_->Send(WithContext({.to_incarnation = link.incarnation,
                                  .kind = Kind::kCancelRun,
                                  .to = link.slot,
                                  .function = function.value(),
                                  .run = run.value()}));
    }
    link.runs.clear();
  }
}

void Coordinator::CheckDone() {
  if (!leases_->Exhausted() || queue_.unfinished() > 0) {
    done_at_ = 0;
    return;
  }
  // Checkpoints cover everything, so that nothing is kept for a restore to an older one; then
  // heartbeats carry the low-water mark to the servers.
  if (queue_.kept() > 0) {
    done_at_ = 0;
    return TakeCheckpoint();
  }
  if (done_at_ == 0) done_at_ = cluster_->now() + kHeartbeatEvery;
}

void Coordinator::CheckMemory() const {
  if (!states_.empty())
    cluster_->truth().Fail(absl::StrCat(states_.size(), " finished functions have state left"));
}

std::string Coordinator::Progress() const {
  return absl::StrCat("epoch ", epoch_, beginning_ ? ", beginning" : "", paused_ ? ", paused" : "",
                      ", generation ", generation_, ", functions unfinished ", queue_.unfinished(),
                      " queued ", queue_.queued(), ", kept ", queue_.kept(), ", workers ",
                      links_.size(), ", servers ", membership_.Count(pb::ROLE_PSSERVER),
                      ", low water ", queue_.low_water().value(),
                      leases_->Exhausted() ? ", data used up" : "");
}

}  // namespace mu::sim
