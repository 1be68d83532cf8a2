// Functions; members are in coordinator_members.cc, calls to daemons in coordinator_calls.cc,
// checkpoints in coordinator_checkpoint.cc.
#include "tests/sim/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster.h"

namespace mu::sim {
namespace {

constexpr size_t kQueueBound = 3;

absl::Time At(Time time) { return absl::UnixEpoch() + absl::Nanoseconds(time); }

DataLayout DataOf(const Scenario& scenario) {
  pb::DatasetProto dataset;
  dataset.set_id(kDataset);
  dataset.set_batch_size(1);
  dataset.set_block_records(2);
  dataset.set_shuffle_records(6);
  dataset.set_epochs(scenario.epochs);
  dataset.set_seed(scenario.batches);
  return {dataset, std::make_shared<const std::vector<FileLayout>>(1, scenario.batches)};
}

StartRun RunOf(const Message& message) {
  const uint32_t worker =
      IsWorkerSlot(message.from) ? (message.from - kFirstWorkerSlot) / 2u : message.index;
  return {FunctionId(message.function), RunId(message.run), WorkerId(worker)};
}

CallError ErrorOf(Code code) {
  static const absl::Status unavailable = absl::UnavailableError("simulated");
  static const absl::Status stale = absl::FailedPreconditionError("simulated");
  CallError error;
  switch (code) {
    case Code::kOk:
    case Code::kHandedBack:
      break;
    case Code::kNotInstalled:
      error.status = stale;
      error.kind = pb::ERROR_NOT_INSTALLED;
      break;
    case Code::kServerGone:
      error.status = unavailable;
      error.kind = pb::ERROR_MACHINE;
      error.role = pb::ROLE_PSSERVER;
      break;
    case Code::kStale:  // a server or a worker knows a newer generation
      error.status = stale;
      error.kind = pb::ERROR_STALE;
      error.role = pb::ROLE_PSSERVER;
      break;
    default:
      error.status = unavailable;
      error.kind = pb::ERROR_MACHINE;
  }
  return error;
}

}  // namespace

Coordinator::Coordinator(Cluster* cluster, Slot slot)
    : cluster_(cluster),
      slot_(slot),
      expected_servers_(cluster->servers()),
      epoch_(++cluster->disk().epoch),
      core_({.job = JobId(kJob),
             .epoch = CoordinatorEpoch(epoch_),
             .servers = expected_servers_,
             .in_flight = static_cast<int>(cluster->scenario().in_flight),
             .heartbeat = absl::Nanoseconds(kHeartbeatEvery),
             .timeout = absl::Nanoseconds(kLease),
             .backup = {.least_seconds = static_cast<double>(kBackupAfter) / 1e9},
             .started = At(cluster->now())}) {}

void Coordinator::Start() {
  cluster_->Trace(slot_, "starts in epoch ", epoch_);
  cluster_->SetTimer(slot_, kMonitorEvery, {.kind = Kind::kTick});
  cluster_->SetTimer(slot_, cluster_->scenario().checkpoint_every, {.kind = Kind::kCheckpointDue});
  Step(event::DatasetAdded{DataOf(cluster_->scenario()), PlanOf(0)});
  Step(event::EnableRecovery{cluster_->scenario().recover_shard ? RecoveryMode::kShard
                                                                : RecoveryMode::kAll});
  Step(event::CatalogChanged{.parameters = 1});
  beginning_task_ = Ask({.kind = ServerTask::Kind::kReady});
}

DataLeases::Plan Coordinator::PlanOf(uint64_t epoch) const {
  return std::make_shared<const EpochPlan>(*EpochPlan::Make(DataOf(cluster_->scenario()), epoch));
}

void Coordinator::Do(action::MakePlan& a) {
  cluster_->SetTimer(slot_, cluster_->Between(kMicrosecond, 100 * kMillisecond),
                     {.kind = Kind::kPlanMade, .function = a.epoch});
}

TaskId Coordinator::Ask(ServerTask task) {
  last_task_ = last_task_.Next();
  const TaskId id = last_task_;
  Step(event::TaskWanted{id, std::move(task)});
  return id;
}

void Coordinator::Step(Event event) {
  events_.push_back(std::move(event));
  if (std::exchange(stepping_, true)) return;
  while (!events_.empty() && !ended_) {
    Actions actions;
    Event next = std::move(events_.front());
    events_.pop_front();
    cluster_->seen().Saw(next);
    core_.Step(At(cluster_->now()), std::move(next), &actions);
    for (Action& action : actions) {
      cluster_->seen().Saw(action);
      std::visit([this](auto& a) { Do(a); }, action);
      if (ended_) return;  // the process is gone
    }
  }
  stepping_ = false;
}

void Coordinator::Handle(const Message& message) {
  handling_ = &message;
  switch (message.kind) {
    case Kind::kTick:
      cluster_->SetTimer(slot_, kMonitorEvery, {.kind = Kind::kTick});
      Monitor();
      break;
    case Kind::kRegister:
      OnRegister(message);
      break;
    case Kind::kHeartbeat:
      OnHeartbeat(message);
      break;
    case Kind::kLeave:
      OnLeave(message);
      break;
    case Kind::kDaemonDied:
      for (const Member& member : core_.membership().All()) {
        if (member.pid == message.index && member.incarnation == Incarnation(message.incarnation))
          Step(event::DaemonDied{member.pid, ""});
      }
      break;
    case Kind::kConnectionLost:
      OnConnectionLost(message);
      break;
    case Kind::kStepResult:
      OnStepResult(message);
      break;
    case Kind::kRunEnded:
      OnRunEnded(message);
      break;
    case Kind::kPlanMade:
      return Step(event::PlanMade{kDataset, WorkerId(), PlanOf(message.function)});
    case Kind::kCheckpointDue:
      TakeCheckpoint();
      cluster_->SetTimer(slot_, cluster_->scenario().checkpoint_every,
                         {.kind = Kind::kCheckpointDue});
      break;
    case Kind::kAssigned:
      OnAssigned(message);
      break;
    case Kind::kManifestDue:
      OnManifestDue(message);
      break;
    case Kind::kUserError:
      UserError();
      break;
    case Kind::kReply:
      if (message.request == Kind::kInstall) OnInstalled(message);
      if (message.request == Kind::kCancelBelow) OnCancelReply(message);
      if (message.request == Kind::kFence) OnFenceReply(message.server, message);
      if (message.request == Kind::kSave) OnSaved(message.server, message);
      if (message.request == Kind::kRestore || message.request == Kind::kConfigure)
        OnStateReply(message.server, message);
      break;
    default:
      break;
  }
  handling_ = nullptr;
  if (ended_) return;
  Feed();
  CheckDone();
}

Message Coordinator::WithContext(Message message) const {
  message.from = slot_;
  message.epoch = epoch_;
  message.low_water = core_.low_water().value();
  return message;
}

void Coordinator::Monitor() {
  Step(event::Tick{});
  if (ended_) return;
  CheckCalls();
  if (done_at_ != 0 && cluster_->now() >= done_at_ && core_.serving() && !core_.cancelling())
    cluster_->JobDone(slot_);
}

void Coordinator::OnConnectionLost(const Message& message) {
  for (const auto& [id, link] : links_) {
    if (link.incarnation != message.incarnation || link.runs.empty()) continue;
    // The streams of its runs end; the first one that says so makes the coordinator drop the
    // worker.
    Message ended{.code = Code::kMachine,
                  .index = static_cast<uint8_t>(id.value()),
                  .function = link.runs.front().first.value(),
                  .run = link.runs.front().second.value()};
    return Step(event::RunEnded{RunOf(ended), ErrorOf(Code::kMachine)});
  }
}

void Coordinator::Feed() {
  const DataLeases& leases = *core_.leases(kDataset)->shared();
  while (!beginning_ && !ended_ && !core_.cancelling() && core_.queue().queued() < kQueueBound &&
         !leases.Exhausted()) {
    if (assign_task_ == TaskId() && cluster_->PerMille(20)) {
      assign_task_ = last_task_.Next();
      Ask({.kind = ServerTask::Kind::kAssign, .assignment = std::make_shared<Assignment>()});
    }
    FunctionWork work;
    work.steps = cluster_->scenario().steps;
    work.dataset = kDataset;
    work.trains = work.updates = true;
    Step(event::Schedule{std::move(work)});
  }
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

void Coordinator::Do(action::Start& a) {
  const StartRun& start = a.start;
  Link& link = links_.at(start.worker);
  const FunctionQueue::Function& function = *core_.queue().Find(start.function);
  Message run = WithContext({.kind = Kind::kRun,
                             .to = link.slot,
                             .index = static_cast<uint8_t>(start.worker.value()),
                             .first_step = static_cast<uint8_t>(start.first_step),
                             .steps = static_cast<uint8_t>(start.steps),
                             .generation = generation_,
                             .function = start.function.value(),
                             .run = start.run.value(),
                             .after = start.after.value()});
  size_t step = 0;
  for (const auto& range : function.batches) {
    for (uint32_t i = 0; i < range.batches; ++i)
      run.records[step++] = RecordOf(range, range.first_batch + i);
  }
  link.runs.push_back({start.function, start.run});
  cluster_->Send(run);
}

void Coordinator::Do(action::StopRun& a) {
  const auto link = links_.find(a.worker);
  if (link == links_.end()) return;
  for (const auto& [function, run] : link->second.runs) {
    if (run != a.run) continue;
    Message cancel = WithContext({.to_incarnation = link->second.incarnation,
                                  .kind = Kind::kCancelRun,
                                  .to = link->second.slot,
                                  .function = function.value(),
                                  .run = run.value()});
    cluster_->Send(cancel);
    // Its caller's end of the stream ends by itself.
    cancel.to_incarnation = 0;
    cancel.kind = Kind::kRunEnded;
    cancel.code = Code::kMachine;
    cancel.index = static_cast<uint8_t>(a.worker.value());
    cluster_->SetTimer(slot_, kMillisecond / 10, cancel);
  }
}

void Coordinator::OnStepResult(const Message& message) {
  event::Results results = {.start = RunOf(message)};
  results.steps.push_back({.step = message.step, .samples = 1, .repeated = message.repeated});
  results.steps[0].updates.assign(message.step_updates.begin(), message.step_updates.end());
  results.steps[0].inherited.assign(message.step_inherited.begin(), message.step_inherited.end());
  const auto next_step = [&] {
    const FunctionQueue::Function* const function = core_.queue().Find(results.start.function);
    return function == nullptr ? 0 : function->next_step;
  };
  const FunctionId id = results.start.function;
  const uint32_t before = next_step();
  Step(results);
  if (next_step() != before) cluster_->truth().ResultTaken(epoch_, id.value(), message.step);
}

void Coordinator::Do(action::Deliver& a) {
  const auto state = states_.find(a.function);
  if (state == states_.end()) return;  // of a function that an earlier coordinator had scheduled
  cluster_->truth().Delivered(epoch_, a.function.value(), handling_->step);
  ++state->second;
}

void Coordinator::OnRunEnded(const Message& message) {
  const StartRun start = RunOf(message);
  if (const auto link = links_.find(start.worker); link != links_.end()) {
    auto& runs = link->second.runs;
    std::erase(runs, std::make_pair(start.function, start.run));
  }
  if (message.epoch > epoch_) return Step(event::EpochSeen{CoordinatorEpoch(message.epoch)});
  if (message.code == Code::kHandedBack) Step(event::Results{.start = start, .handed_back = true});
  Step(event::RunEnded{start, ErrorOf(message.code)});
}

void Coordinator::UserError() {
  if (beginning_ || core_.cancelling()) return;
  const FunctionQueue& queue = core_.queue();
  for (uint64_t id = queue.low_water().value(); id < queue.next_id().value(); ++id) {
    const FunctionQueue::Function* function = queue.Find(FunctionId(id));
    if (function == nullptr || function->finished) continue;
    std::vector<uint16_t> records;
    for (const auto& range : function->batches) {
      for (uint32_t i = 0; i < range.batches; ++i)
        records.push_back(RecordOf(range, range.first_batch + i));
    }
    cluster_->truth().Cancelled(epoch_, id, records);
  }
  done_at_ = 0;
  Step(event::CancelEverything{});
}

void Coordinator::Do(action::Paused&) {
  if (cluster_->scenario().recover_shard) return;
  for (uint8_t s = 0; s < expected_servers_; ++s) cluster_->truth().StateGivenUp(s);
}

void Coordinator::Do(action::Cancelled&) { cluster_->truth().CancelReported(epoch_); }

void Coordinator::Do(action::Ended& a) {
  cluster_->Trace(slot_, "ends: ", a.error.message());
  ended_ = true;
  cluster_->Exit(slot_);
}

void Coordinator::Do(action::Note& a) { cluster_->Trace(slot_, a.text); }

void Coordinator::CheckDone() {
  if (!core_.leases(kDataset)->shared()->Exhausted() || core_.queue().unfinished() > 0 ||
      assign_task_ != TaskId()) {
    done_at_ = 0;
    return;
  }
  // Checkpoints cover everything, so that nothing is kept for a restore to an older one; then
  // heartbeats carry the low-water mark to the servers.
  if (core_.queue().kept() > 0) {
    done_at_ = 0;
    return TakeCheckpoint();
  }
  if (done_at_ == 0) done_at_ = cluster_->now() + 2 * kHeartbeatEvery;
}

void Coordinator::CheckMemory() const {
  if (!states_.empty())
    cluster_->truth().Fail(absl::StrCat(states_.size(), " finished functions have state left"));
}

std::string Coordinator::Progress() const {
  const FunctionQueue& queue = core_.queue();
  return absl::StrCat("epoch ", epoch_, beginning_ ? ", beginning" : "",
                      core_.serving() ? "" : ", paused", core_.cancelling() ? ", cancelling" : "",
                      ", generation ", generation_, ", functions unfinished ", queue.unfinished(),
                      " queued ", queue.queued(), ", kept ", queue.kept(), ", workers ",
                      links_.size(), ", servers ", core_.membership().Count(pb::ROLE_PSSERVER),
                      ", low water ", queue.low_water().value());
}

}  // namespace mu::sim
