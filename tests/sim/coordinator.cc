// Functions; what the user does is in coordinator_user.cc, members are in coordinator_members.cc,
// the servers' state in coordinator_servers.cc.
#include "tests/sim/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "tests/sim/cluster.h"

namespace mu::sim {
namespace {

constexpr uint32_t kFiles = 4;  // of the data

DataLayout DataOf(const Scenario& scenario) {
  pb::DatasetProto dataset;
  dataset.set_id(kDataset);
  dataset.set_batch_size(1);
  dataset.set_block_records(2);
  dataset.set_shuffle_records(6);
  dataset.set_epochs(scenario.per_worker      ? scenario.own_epochs
                     : scenario.starts_epochs ? 1
                                              : scenario.epochs);
  dataset.set_seed(scenario.batches);
  if (scenario.per_worker) dataset.set_visitation(pb::VISITATION_NONE);
  return {dataset, std::make_shared<const std::vector<FileLayout>>(1, scenario.batches)};
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
             .queue_bound = 3,
             .heartbeat = absl::Nanoseconds(kHeartbeatEvery),
             .timeout = absl::Nanoseconds(kLease),
             .backup = {.least_seconds = static_cast<double>(kBackupAfter) / 1e9},
             .started = At(cluster->now()),
             .scan_patience = absl::Nanoseconds(20 * kMillisecond),
             .installs = {.most = kMostInstalls, .patience = absl::Nanoseconds(kInstallPatience)}}),
      own_since_(cluster->disk().last_checkpoint) {}

void Coordinator::Start() {
  cluster_->Trace(slot_, "starts in epoch ", epoch_);
  After(kMonitorEvery, "", [this] { Monitor(); });
  After(cluster_->scenario().checkpoint_every, "checkpoint due", [this] { TakeCheckpoints(); });
  Evaluate();
  if (cluster_->rules().on()) Step(event::SetRounds{cluster_->rules()});
  Step(event::EnableRecovery{cluster_->scenario().recover_shard ? RecoveryMode::kShard
                                                                : RecoveryMode::kAll});
  if (const uint64_t bytes = cluster_->scenario().most_kept; bytes > 0)
    Step(event::MostKept{bytes});
  if (const auto most = cluster_->scenario().most_ahead) Step(event::BoundStaleness{*most});
  Step(event::CatalogChanged{.parameters = 1});
  auto dataset = std::make_shared<pb::DatasetProto>(DataOf(cluster_->scenario()).dataset);
  std::vector<uint32_t> files;
  for (uint32_t file = 0; file < kFiles; ++file) {
    dataset->add_files(absl::StrCat("file ", file));
    files.push_back(file);
  }
  Step(event::ScanWanted{ScanId(1), std::move(dataset), std::move(files)});
}

void Coordinator::Do(action::ScanFiles& a) {
  const Place place = PlaceOf(pb::ROLE_WORKER, a.worker.value());
  event::Scanned scanned = {a.scan, a.worker, Incarnation(place.incarnation), a.files};
  if (cluster_->failing() && cluster_->PerMille(20)) {
    scanned.installed = false;
    scanned.error = CallError::Of(
        WithKind(absl::InternalError("no memory"), pb::ERROR_MACHINE, pb::ROLE_WORKER));
    return After(kMillisecond, "not installed", [=, this] { Step(scanned); });
  }
  for (const uint32_t file : a.files) {
    scanned.files = {file};
    CallAll(
        {WithContext({.kind = Kind::kScan, .to = place.slot, .file = static_cast<uint8_t>(file)})},
        kOnce, [=, this](const absl::Status& status, const Messages&) mutable {
          scanned.error = CallError::Of(status);
          if (status.ok()) files_seen_.insert(file);
          Step(scanned);
        });
  }
}

void Coordinator::Do(action::FileCounts& a) {
  if (!files_counted_.insert(a.file).second)
    cluster_->truth().Fail(absl::StrCat("file ", a.file, " counts twice"));
}

void Coordinator::Do(action::ScanDone& a) {
  if (ended()) return;
  if (!a.status.ok()) {
    const bool input_wrong = KindOf(a.status) == pb::ERROR_USER;
    if (input_wrong) Saw("input wrong");
    if (input_wrong && files_seen_.contains(InputFaultOf(a.status).file()))
      cluster_->truth().Fail("a file is said to be missing that a worker has read");
    return After(0, "program ends", [this] { cluster_->Exit(slot_); });
  }
  if (files_counted_.size() != kFiles) cluster_->truth().Fail("a file of the data is left out");
  const DataLayout data = DataOf(cluster_->scenario());
  Step(event::DatasetAdded{data, PlanOf(data, 0)});
  Ask(&beginning_task_, {.kind = ServerTask::Kind::kReady});
}

void Coordinator::Step(Event event) {
  events_.push_back(std::move(event));
  if (std::exchange(stepping_, true)) return;
  while (!events_.empty()) {
    Actions actions;
    Event next = std::move(events_.front());
    events_.pop_front();
    cluster_->seen().Saw(next);
    if (cluster_->scenario().replicas > 0) NoteBound();
    const auto* const run_ended = std::get_if<event::RunEnded>(&next);
    const bool about_group = std::holds_alternative<event::ViewAnswered>(next) ||
                             (run_ended != nullptr && IsInGroup(run_ended->start.function));
    const bool run_failed = run_ended != nullptr && !run_ended->error.ok() && !about_group;
    const bool was_cancelling = core_.cancelling();
    was_awaited_ = core_.queue().IsTrainingAwaited();
    const bool in_a_round = core_.round_decided();
    const auto* const leave = std::get_if<event::Leave>(&next);
    if (in_a_round && leave != nullptr && leave->request.role() == pb::ROLE_PSSERVER)
      Saw("leave in a decided round");
    if (const absl::Status refused = RefusalIn(next); !refused.ok()) {
      if (was_cancelling) Saw("second error dropped");
      NoteError(refused);
    }
    const bool heartbeat = std::holds_alternative<event::Heartbeat>(next);
    const bool was_paused = core_.updates_paused();
    core_.Step(At(now()), std::move(next), &actions);
    if (heartbeat && !was_paused && core_.updates_paused()) Saw("server reports full");
    for (Action& action : actions) {
      cluster_->seen().Saw(action);
      std::visit([this](auto& a) { Do(a); }, action);
    }
    if (in_a_round && core_.cancelling() && !was_cancelling) Saw("error in a decided round");
    // A worker that is free again may find that its own data has ended.
    CheckGroups(about_group && !error_waits_ && !cluster_->scenario().per_worker, was_cancelling);
    // An error of training waits for the ends of what its worker had begun before, also in groups.
    if (run_failed) error_waits_ = true;
    if (core_.cancelling()) error_waits_ = false;
    if (ended() && !core_.closed()) {
      cluster_->Trace(slot_, "ends: ", core_.ended().message());
      Saw("coordinator ends");
      return cluster_->Exit(slot_);
    }
  }
  stepping_ = false;
}

// What has its records may wait for the next round: it is known before it starts.
void Coordinator::NoteBound() {
  for (auto& [id, records] : records_) {
    const FunctionQueue::Function* const function = core_.queue().Find(id);
    if (records.empty() && function != nullptr && function->bound) records = RecordsOf(*function);
  }
}

void Coordinator::AfterAll() {
  HearError();
  Feed();
  ActWhenQuiet();
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
  if (!ended() && done_at_ != 0 && now() >= done_at_ && core_.serving() && !core_.cancelling())
    cluster_->JobDone(slot_);
}

void Coordinator::Do(action::MakePlan& a) {
  if (cluster_->failing() && cluster_->PerMille(cluster_->scenario().per_mille_no_plan))
    return Step(event::Fail{absl::ResourceExhaustedError("the epoch cannot be planned")});
  After(cluster_->Between(kMicrosecond, 100 * kMillisecond), "plan made", [this, a] {
    Step(event::PlanMade{kDataset, PlanOf(a.data, a.epoch)});
  });
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

void Coordinator::Do(action::Scheduled& a) {
  if (records_.empty() || IsInGroup(records_.begin()->first)) turn_ = a.function;
  records_[a.function];
  if (!IsInGroup(a.function)) turns_[a.function] = turn_;
  const FunctionQueue::Function* const function = core_.queue().Find(a.function);
  if (IsInGroup(a.function) || function == nullptr || function->work.dataset != 0) return;
  if (!function->work.trains) {
    only_read_.insert(a.function);
  } else {
    cluster_->truth().ScheduledWithoutData(epoch_, a.function.value(), function->work.steps);
  }
}

void Coordinator::Do(action::Start& a) {
  const StartRun& start = a.start;
  if (const FunctionQueue::Function* const function = core_.queue().Find(start.function);
      function == nullptr || function->run != start.run) {
    return cluster_->truth().Fail(
        absl::StrCat("function ", start.function.value(), " is started and has ended"));
  }
  Message run = WithContext(
      {.kind = Kind::kRun,
       .first_step = static_cast<uint8_t>(start.first_step),
       .steps = static_cast<uint8_t>(start.steps),
       .generation = OnWire(generation_),
       .round = start.round,
       .most = core_.queue().rounds().most(),
       .function = start.function.value(),
       .run = start.run.value(),
       .place = static_cast<uint32_t>(core_.queue().Find(start.function)->work.step_offset)});
  if (IsInGroup(start.function)) {
    StartInGroup(start, &run);
  } else {
    cluster_->truth().Started(start.function.value(), start.first_step, start.round);
    // Of a coordinator before this one only checkpoints know it.
    if (const auto turn = turns_.find(start.function);
        turn != turns_.end() && core_.queue().IsRepeating(turn->second))
      cluster_->truth().Fail("a function runs beside what its user had joined before it");
    const FunctionQueue::Function& function = *core_.queue().Find(start.function);
    const std::vector<uint16_t> records = RecordsOf(function);
    std::copy(records.begin(), records.end(), run.records.begin());
    if (function.work.dataset == 0) {
      Saw("function without data");
      run.records.fill(kNoRecord);
    }
    if (cluster_->scenario().per_worker)
      cluster_->truth().Bound(epoch_, start.function.value(), function.steps);
    run.only_reads = only_read_.contains(start.function);
    LetFail(&run);
    if (const auto known = records_.find(start.function); known != records_.end())
      known->second = records;
    else
      repeated_[start.function] = records;
  }
  Stream& feed = FeedTo(start.worker);
  if (!feed.ended.ok()) return Step(event::RunEnded{start, CallError::Of(feed.ended)});
  feed.runs[start.run] = start;
  Say(feed, std::move(run));
}

void Coordinator::Do(action::StopRun& a) {
  const auto feed = feeds_.find(a.worker);
  if (feed == feeds_.end()) return;
  const auto run = feed->second.runs.extract(a.run);
  if (run.empty()) return;
  Say(feed->second, WithContext({.kind = Kind::kCancelRun, .run = a.run.value()}));
  Step(event::RunEnded{run.mapped(), CallError::Of(absl::CancelledError("nobody waits for it"))});
}

void Coordinator::OnStepResult(const StartRun& start, const Message& message) {
  if (!message.status.ok()) {
    const Place place = PlaceOf(pb::ROLE_WORKER, start.worker.value());
    return Step(
        event::Unreadable{start.worker, Incarnation(place.incarnation), start.run, "garbage"});
  }
  StepOutcome outcome = {
      .step = message.step, .samples = SamplesOf(message.records[0]), .repeated = message.repeated};
  outcome.updates.assign(message.step_updates.begin(), message.step_updates.end());
  outcome.inherited.assign(message.step_inherited.begin(), message.step_inherited.end());
  const auto next_step = [&] {
    const FunctionQueue::Function* const function = core_.queue().Find(start.function);
    return function == nullptr ? 0 : function->next_step;
  };
  const uint32_t before = next_step();
  Step(event::Results{.start = start, .steps = {std::move(outcome)}});
  if (next_step() != before && !IsInGroup(start.function) && !only_read_.contains(start.function))
    cluster_->truth().ResultTaken(epoch_, start.function.value(), message.step);
}

void Coordinator::Do(action::Deliver& a) {
  if (IsInGroup(a.function)) return DeliverInGroup(a.function);
  if (records_.contains(a.function))
    cluster_->truth().Delivered(epoch_, a.function.value(), handling_->step);
}

void Coordinator::Do(action::DeliverKept& a) {
  if (records_.contains(a.function))
    cluster_->truth().Delivered(epoch_, a.function.value(), kept_steps_.at(a.function));
}

void Coordinator::Do(action::CommitRound& a) {
  const auto committed = [this, attempt = a.attempt, set = a.set](const absl::Status& status,
                                                                  const Messages& answers) {
    event::RoundCommitted event = {.attempt = attempt, .error = CallError::Of(status)};
    for (const Message& answer : answers)
      event.updates.push_back(static_cast<uint32_t>(answer.updates));
    skips_ -= set.steps.empty() ? 1 : 0;
    // What follows from it comes with the same event.
    const uint64_t before = core_.rounds().committed;
    Step(std::move(event));
    if (core_.rounds().committed == before) return;
    for (const RoundSet::Step& step : set.steps)
      cluster_->truth().ResultTaken(epoch_, step.function.value(), step.step);
  };
  skips_ += a.set.steps.empty() ? 1 : 0;
  CallAll(ToServers({.kind = Kind::kCommitRound,
                     .generation = OnWire(a.generation),
                     .round = a.set.round,
                     .set = cluster_->AddRound(a.set)}),
          kTries, committed);
}

void Coordinator::Do(action::Finish& a) {
  if (IsInGroup(a.function)) return FinishInGroup(a);
  kept_steps_.erase(a.function);
  auto records = records_.extract(a.function);
  if (a.status.ok() && !records.empty()) finished_[a.function] = std::move(records.mapped());
  if (a.status.ok() || ended()) return;
  // Not what ends since another function has failed.
  if (!absl::IsCancelled(a.status)) NoteError(a.status);
  if (absl::IsOutOfRange(a.status)) {
    Saw("out of data");
    out_of_data_ = true;
    cluster_->truth().OutOfData(epoch_, core_.queue().next_id().value());
  }
  // One that had its result may fail when it is repeated. It is left out then, too.
  cluster_->truth().Cancelled(epoch_, a.function.value(),
                              records.empty() ? repeated_[a.function] : records.mapped());
}

void Coordinator::Do(action::Note& a) {
  // Without details of errors, which come in any order.
  cluster_->Trace(slot_, a.text.substr(0, a.text.find(" [type.")));
  if (absl::EndsWith(a.text, " will run again")) Saw("rolled back");
}

void Coordinator::CheckMemory() const {
  if (!records_.empty())
    cluster_->truth().Fail(absl::StrCat(records_.size(), " finished functions have state left"));
}

std::string Coordinator::Progress() const {
  const FunctionQueue& queue = core_.queue();
  return absl::StrCat(
      "epoch ", epoch_, beginning_ ? ", beginning" : "", core_.serving() ? "" : ", paused",
      core_.cancelling() ? ", cancelling" : "", ", generation ", OnWire(generation_),
      ", functions unfinished ", queue.unfinished(), " queued ", queue.queued(), ", kept ",
      queue.kept(), ", workers ", core_.workers().size(), ", servers ",
      core_.membership().Count(pb::ROLE_PSSERVER), ", evaluations ", evaluations_,
      EvaluationsDone() ? "" : " (not done)", ", low water ", queue.low_water().value());
}

}  // namespace mu::sim
