// Functions; members are in coordinator_members.cc, calls to daemons in coordinator_calls.cc,
// checkpoints in coordinator_checkpoint.cc.
#include "tests/sim/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/sim/cluster.h"

namespace mu::sim {
namespace {

constexpr size_t kQueueBound = 3;
constexpr uint32_t kMostGarbage = 3;  // answers to one function

DataLayout DataOf(const Scenario& scenario) {
  pb::DatasetProto dataset;
  dataset.set_id(kDataset);
  dataset.set_batch_size(1);
  dataset.set_block_records(2);
  dataset.set_shuffle_records(6);
  dataset.set_epochs(scenario.per_worker ? 0 : scenario.epochs);
  dataset.set_seed(scenario.batches);
  if (scenario.per_worker) dataset.set_visitation(pb::VISITATION_NONE);
  return {dataset, std::make_shared<const std::vector<FileLayout>>(1, scenario.batches)};
}

StartRun RunOf(const Message& message) {
  return {FunctionId(message.function), RunId(message.run), WorkerId(IndexOf(message.from))};
}

}  // namespace

Coordinator::Coordinator(Cluster* cluster, Slot slot, uint64_t incarnation)
    : Process(cluster, slot, incarnation),
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
  After(kMonitorEvery, "", [this] { Monitor(); });
  After(cluster_->scenario().checkpoint_every, "checkpoint due", [this] { TakeCheckpoints(); });
  const DataLayout data = DataOf(cluster_->scenario());
  Step(event::DatasetAdded{data, PlanOf(data, 0)});
  Step(event::EnableRecovery{cluster_->scenario().recover_shard ? RecoveryMode::kShard
                                                                : RecoveryMode::kAll});
  if (const uint64_t bytes = cluster_->scenario().most_kept; bytes > 0)
    Step(event::MostKept{bytes});
  Step(event::CatalogChanged{.parameters = 1});
  beginning_task_ = Ask({.kind = ServerTask::Kind::kReady});
}

void Coordinator::Do(action::MakePlan& a) {
  After(cluster_->Between(kMicrosecond, 100 * kMillisecond), "plan made", [this, a] {
    Step(event::PlanMade{kDataset, a.worker, PlanOf(a.data, a.epoch)});
  });
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
    core_.Step(At(now()), std::move(next), &actions);
    for (Action& action : actions) {
      cluster_->seen().Saw(action);
      std::visit([this](auto& a) { Do(a); }, action);
    }
    if (const absl::Status ended = core_.ended(); !ended.ok()) {
      cluster_->Trace(slot_, "ends: ", ended.message());
      Saw("coordinator ends");
      ended_ = true;
      return cluster_->Exit(slot_);  // the process is gone
    }
  }
  stepping_ = false;
}

void Coordinator::Handle(const Message& message) {
  handling_ = &message;
  switch (message.kind) {
    case Kind::kRegister:
      return OnRegister(message);
    case Kind::kHeartbeat:
      return OnHeartbeat(message);
    case Kind::kLeave:
      return OnLeave(message);
    case Kind::kStepResult:
      return OnStepResult(message);
    case Kind::kRunEnded:
      return OnRunEnded(RunOf(message), message.code, message.epoch);
    case Kind::kReply:
      return OnReply(message);
    default:
      return;
  }
}

void Coordinator::AfterAll() {
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
  After(kMonitorEvery, "", [this] { Monitor(); });
  Step(event::Tick{});
  RepeatCalls();
  if (!ended_ && done_at_ != 0 && now() >= done_at_ && core_.serving() && !core_.cancelling())
    cluster_->JobDone(slot_);
}

void Coordinator::TakeCheckpoints() {
  After(cluster_->scenario().checkpoint_every, "checkpoint due", [this] { TakeCheckpoints(); });
  TakeCheckpoint();
}

void Coordinator::OnDaemonDied(Slot slot, uint64_t incarnation) {
  for (const Member& member : core_.membership().All()) {
    if (member.pid == slot && member.incarnation == Incarnation(incarnation))
      Step(event::DaemonDied{member.pid, ""});
  }
}

void Coordinator::OnConnectionLost(uint64_t incarnation) {
  for (const auto& [id, link] : links_) {
    if (link.incarnation != incarnation || link.runs.empty()) continue;
    // The streams of its runs end; the first one that says so makes the coordinator drop the
    // worker.
    const auto& [function, run] = link.runs.front();
    return Step(event::RunEnded{{function, run, id}, ErrorOf(Code::kMachine)});
  }
}

bool Coordinator::AllScheduled() {
  const Scenario& scenario = cluster_->scenario();
  return scenario.per_worker ? core_.queue().next_id().value() > scenario.Functions()
                             : core_.leases(kDataset)->shared()->Exhausted();
}

void Coordinator::Feed() {
  while (!beginning_ && !ended_ && !core_.cancelling() && core_.queue().queued() < kQueueBound &&
         !AllScheduled()) {
    if (!cluster_->scenario().per_worker && assign_task_ == TaskId() && cluster_->PerMille(20)) {
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

std::vector<uint16_t> Coordinator::RecordsOf(const FunctionQueue::Function& function) const {
  std::vector<uint16_t> records;
  for (const BatchRange& range : function.batches) {
    const uint64_t epoch_begin = range.lease->epoch() * cluster_->scenario().batches;
    uint32_t batch = 0;  // of the lease
    for (const pb::BlockProto& block : range.lease->blocks()) {
      for (uint64_t r = 0; r < block.count(); ++r, ++batch) {
        if (batch >= range.first_batch && batch < range.first_batch + range.batches)
          records.push_back(static_cast<uint16_t>(epoch_begin + block.first() + r));
      }
    }
  }
  return records;
}

void Coordinator::Do(action::Start& a) {
  const StartRun& start = a.start;
  Link& link = links_.at(start.worker);
  const FunctionQueue::Function& function = *core_.queue().Find(start.function);
  Message run = WithContext({.kind = Kind::kRun,
                             .to = link.slot,
                             .first_step = static_cast<uint8_t>(start.first_step),
                             .steps = static_cast<uint8_t>(start.steps),
                             .generation = generation_,
                             .function = start.function.value(),
                             .run = start.run.value(),
                             .after = start.after.value()});
  const std::vector<uint16_t> records = RecordsOf(function);
  std::copy(records.begin(), records.end(), run.records.begin());
  link.runs.push_back({start.function, start.run});
  cluster_->Send(run);
}

void Coordinator::Do(action::StopRun& a) {
  const auto link = links_.find(a.worker);
  if (link == links_.end()) return;
  for (const auto& [function, run] : link->second.runs) {
    if (run != a.run) continue;
    cluster_->Send(WithContext({.to_incarnation = link->second.incarnation,
                                .kind = Kind::kCancelRun,
                                .to = link->second.slot,
                                .function = function.value(),
                                .run = run.value()}));
    // Its caller's end of the stream ends by itself.
    After(kMillisecond / 10, "stream ends", [this, start = StartRun{function, run, a.worker}] {
      OnRunEnded(start, Code::kMachine, 0);
    });
  }
}

void Coordinator::OnStepResult(const Message& message) {
  const StartRun start = RunOf(message);
  const auto next_step = [&] {
    const FunctionQueue::Function* const function = core_.queue().Find(start.function);
    return function == nullptr ? 0 : function->next_step;
  };
  if (message.code == Code::kGarbage) {
    const FunctionQueue::Function* const function = core_.queue().Find(start.function);
    if (function != nullptr && function->unreadable + 1 == kMostGarbage) NoteCancelled();
    return Step(event::Unreadable{start, "garbage"});
  }
  StepOutcome outcome = {.step = message.step, .samples = 1, .repeated = message.repeated};
  outcome.updates.assign(message.step_updates.begin(), message.step_updates.end());
  outcome.inherited.assign(message.step_inherited.begin(), message.step_inherited.end());
  const uint32_t before = next_step();
  Step(event::Results{.start = start, .steps = {std::move(outcome)}});
  if (next_step() != before)
    cluster_->truth().ResultTaken(epoch_, start.function.value(), message.step);
}

void Coordinator::Do(action::Deliver& a) {
  const auto state = states_.find(a.function);
  if (state == states_.end()) return;  // of a function that an earlier coordinator had scheduled
  cluster_->truth().Delivered(epoch_, a.function.value(), handling_->step);
  ++state->second;
}

void Coordinator::OnRunEnded(const StartRun& start, Code code, uint32_t epoch) {
  if (const auto link = links_.find(start.worker); link != links_.end())
    std::erase(link->second.runs, std::make_pair(start.function, start.run));
  if (code == Code::kHandedBack) Step(event::Results{.start = start, .handed_back = true});
  CallError error = ErrorOf(code);
  error.epoch = CoordinatorEpoch(epoch);
  Step(event::RunEnded{start, std::move(error)});
}

void Coordinator::NoteCancelled() {
  if (core_.cancelling()) return;
  const FunctionQueue& queue = core_.queue();
  for (uint64_t id = queue.low_water().value(); id < queue.next_id().value(); ++id) {
    const FunctionQueue::Function* function = queue.Find(FunctionId(id));
    if (function != nullptr && !function->finished)
      cluster_->truth().Cancelled(epoch_, id, RecordsOf(*function));
  }
  done_at_ = 0;
}

void Coordinator::UserError() {
  if (beginning_ || core_.cancelling()) return;
  NoteCancelled();
  Step(event::CancelEverything{});
}

void Coordinator::BadFunction() {
  if (beginning_) return;
  ++bad_functions_;
  Step(event::CatalogChanged{++catalog_, routing_, newest_, 1});
}

void Coordinator::Do(action::Paused&) {
  if (cluster_->scenario().recover_shard) return;
  for (uint8_t s = 0; s < expected_servers_; ++s) cluster_->truth().StateGivenUp(s);
}

void Coordinator::Do(action::Note& a) {
  cluster_->Trace(slot_, a.text);
  if (absl::EndsWith(a.text, " will run again")) Saw("rolled back");
}
void Coordinator::Do(action::Cancelled&) { cluster_->truth().CancelReported(epoch_); }

void Coordinator::CheckDone() {
  if (!AllScheduled() || core_.queue().unfinished() > 0 || assign_task_ != TaskId()) {
    done_at_ = 0;
    return;
  }
  // Checkpoints cover everything, so that nothing is kept for a restore to an older one; then
  // heartbeats carry the low-water mark to the servers.
  if (core_.queue().kept() > 0) {
    done_at_ = 0;
    return TakeCheckpoint();
  }
  if (done_at_ == 0) done_at_ = now() + 2 * kHeartbeatEvery;
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
