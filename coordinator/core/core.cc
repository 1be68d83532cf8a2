// The core's beginning and end, time, and what checkpoints say of the job. Members are in
// core_members.cc, functions in core_runs.cc, cancelling in core_cancel.cc, the servers' state in
// core_servers.cc.
#include "coordinator/core/core.h"

#include <algorithm>
#include <utility>

#include "common/base/hash.h"
#include "coordinator/core/protections.h"

namespace mu {
namespace {

// Between two rounds of restores; at least half of it.
constexpr absl::Duration kFirstPause = absl::Milliseconds(200), kLongestPause = absl::Seconds(5);

}  // namespace

Core::Core(Options options)
    : options_(options),
      now_(options.started),
      membership_({options.servers, options.heartbeat, options.timeout, options.workers}),
      installations_(options.installs),
      queue_(
          options.in_flight,
          [this](uint64_t dataset, WorkerId worker, uint32_t steps) {
            return TakeBatches(dataset, worker, steps);
          },
          options.backup),
      between_rounds_(kFirstPause, kLongestPause,
                      HashCombine(options.job.value(), options.epoch.value())),
      delays_(HashCombine(options.epoch.value(), options.job.value())),
      reset_servers_(options.epoch > CoordinatorEpoch(1)) {}

void Core::Step(absl::Time now, Event event, Actions* actions) {
  // There is a Tick in every heartbeat interval. Time without one is nobody's silence. In a long
  // gap, calls that were under way may have lost their connections: that says nothing of who was
  // called. A short one excuses no failure: there may be many, and a peer that hangs.
  if (const absl::Duration gap = now - now_; gap > 2 * options_.heartbeat) {
    cancellation_.StoodStill(gap);
    for (const WorkerId id : workers_leaving_) workers_.at(id).leaves_by += gap;
    if (gap > options_.timeout / 2) awake_since_ = now;
  }
  now_ = now;
  queue_.SetTime(Seconds());
  actions_ = actions;
  std::visit([this](auto& e) { On(e); }, event);
  DoTasks();
  DriveViews();
  if (std::exchange(install_, false)) {
    for (const auto& [id, worker] : workers_) InstallOn(id);
  }
  if (!closed_) {
    for (const auto& [worker, part] : installations_.Next(now_)) Do(action::Install{worker, part});
  }
  if (std::exchange(scan_, false)) DriveScans();
  // Before it: what was complete for a round that is decided now makes room for nothing.
  DriveRounds();
  if (std::exchange(dispatch_, false)) Dispatch();
  DriveRounds();  // which what was dispatched may have left with nothing to wait for
  actions_ = nullptr;
}

void Core::On(event::Tick&) {
  for (const Member& member : membership_.Expire(now_)) {
    Lose(member, "silent",
         absl::StrCat("no heartbeat for ", absl::FormatDuration(options_.timeout)));
  }
  for (const Member& member : membership_.Stalled()) {
    Expel(member.index,
          absl::DeadlineExceededError(
              absl::StrCat("its heartbeats arrive, but its save, restore or configuration has "
                           "moved no byte for ",
                           absl::FormatDuration(kMostSilences * options_.timeout))),
          "hangs");
  }
  for (auto it = workers_leaving_.begin(); it != workers_leaving_.end();) {
    const WorkerId id = *it++;  // it may go
    LeaveIfIdle(id);
  }
  if (now_ >= retry_at_) {
    retry_at_ = absl::InfiniteFuture();
    Act(recovery_.Retry());
  }
  if (now_ >= cancellation_.ask_again_at()) Fence();
  FinishRestore();
  StartBackups();
  dispatch_ = scan_ = true;
}

absl::Time Core::alarm() const {
  absl::Time alarm = std::min(retry_at_, cancellation_.ask_again_at());
  if (restored_.has_value()) alarm = std::min(alarm, old_leases_.last());
  if (work_again_at_ > now_) alarm = std::min(alarm, work_again_at_);
  alarm = std::min({alarm, views_.alarm(now_), installations_.alarm(now_)});
  if (const std::optional<double> at = queue_.surplus_at())
    alarm = std::min(alarm, options_.started + absl::Seconds(*at));
  for (const auto& [id, task] : tasks_) {
    if (task.not_before > now_) alarm = std::min(alarm, task.not_before);
  }
  for (const auto& [id, scan] : scans_) alarm = std::min(alarm, scan.files.alarm(now_));
  for (const WorkerId id : workers_leaving_) alarm = std::min(alarm, workers_.at(id).leaves_by);
  return alarm;
}

absl::Status Core::ended() const {
  return closed_ ? absl::CancelledError("the coordinator is being destroyed") : ended_;
}

bool Core::serving() const {
  return !state_broken() && (!recovery_enabled_ || !recovery_.started() || recovery_.serving());
}

bool Core::whole() const {
  return serving() && !queue_.HasAssignments() && !queue_.repeats_cancelled();
}

bool Core::quiet() const {
  return queue_.unfinished() == 0 && !cancelling() && !queue_.repeats_cancelled();
}

bool Core::done(GroupId group) const {
  return queue_.unfinished(group) == 0 && (group != GroupId() || !recovery_.may_roll_back());
}

void Core::On(event::Close& e) {
  closed_ = true;
  dismissed_ |= e.dismiss;
  const absl::Status closed = ended();
  for (const FunctionId id : queue_.CancelAll(/*all=*/true)) Finish(id, closed);
  EndAllGroups(closed);
  Act(commit_.GiveUp(closed));
  VoidWork();
  EndScans(closed);
  AnswerAll(closed);
  for (auto& [id, worker] : workers_) {
    for (const CallId call : worker.leaving) Do(action::AnswerLeave{call});
    worker.leaving.clear();
  }
  workers_leaving_.clear();
  Do(action::InterruptServers{});
  while (!leaving_.empty()) AnswerLeaving(leaving_.begin()->first);
}

void Core::End(absl::Status error) {
  if (!ended_.ok() || closed_) return;
  ended_ = error;
  Do(action::InterruptServers{});  // of a load, which may take long
  for (const FunctionId id : queue_.CancelAll(/*all=*/true)) Finish(id, error);
  EndAllGroups(error);
  Act(commit_.GiveUp(error));
  VoidWork();
  EndScans(error);
  AnswerAll(error);
  Note(Level::kError, error.ToString());
}

void Core::On(event::CatalogChanged& e) {
  queue_.RequireVersion(e.routing_version);
  generation_ = e.generation;
  installations_.CatalogChanged(e.version, e.parts);
  parameters_ = e.parameters;
  install_ = dispatch_ = true;
}

const DatasetLeases* Core::leases(uint64_t dataset) const {
  const auto it = leases_.find(dataset);
  return it == leases_.end() ? nullptr : &it->second;
}

void Core::On(event::DatasetAdded& e) {
  const uint64_t id = e.data.dataset.id();
  const auto [it, added] = leases_.try_emplace(id, std::move(e.data), std::move(e.first));
  if (added) it->second.SetStepsTaken(resumed_steps_.Of(id, it->second.data().dataset.name()));
}

Permission Core::MayStartEpoch(uint64_t dataset) const {
  if (absl::Status over = ended(); !over.ok()) return {.refusal = std::move(over)};
  // An error of training is dealt with; a group's functions are to start afterwards.
  if (cancelling()) return {.wait = true};
  // What reads other data, as training does while something is evaluated, goes on.
  if (!queue_.IsRead(dataset)) return {};
  if (Permission over = TrainingIsOver(); !over.granted()) return over;
  return {.refusal = absl::FailedPreconditionError(
              "functions of a group read this data; Join or Cancel the group first")};
}

void Core::On(event::EpochStarted& e) {
  if (const auto it = leases_.find(e.dataset); it != leases_.end())
    it->second.StartEpoch(e.epoch, std::move(e.plan));
}

void Core::On(event::PlanMade& e) {
  leases_.at(e.dataset).Bring(std::move(e.plan));
  dispatch_ = true;
}

std::optional<std::vector<BatchRange>> Core::TakeBatches(uint64_t dataset, WorkerId worker,
                                                         uint32_t steps) {
  const auto it = leases_.find(dataset);
  if (it == leases_.end()) return std::vector<BatchRange>();
  DatasetLeases& leases = it->second;
  std::optional<std::vector<BatchRange>> batches =
      leases.Take(leases.shared() == nullptr ? worker : ReaderFor(worker), steps);
  if (const auto epoch = leases.AskForPlan(steps)) Do(action::MakePlan{leases.data(), *epoch});
  return batches;
}

std::shared_ptr<const pb::LeaseProto> Core::UpcomingLease(uint64_t dataset, WorkerId worker) {
  const auto it = leases_.find(dataset);
  if (it == leases_.end()) return nullptr;
  return it->second.Upcoming(it->second.shared() == nullptr ? worker : ReaderFor(worker));
}

std::vector<pb::DatasetPositionProto> Core::DataPositions() const {
  std::vector<pb::DatasetPositionProto> positions;
  for (const auto& [id, leases] : leases_) {
    if (trained_on_.contains(id) && leases.shared() != nullptr)
      positions.push_back(leases.shared()->Position());
  }
  return positions;
}

absl::Status Core::OutOfData(uint64_t dataset) const {
  const DatasetLeases* const leases = this->leases(dataset);
  if (leases == nullptr || leases->shared() != nullptr) return absl::OkStatus();
  const pb::DatasetProto& data = leases->data().dataset;
  return absl::OutOfRangeError(absl::StrCat(
      "the worker of this function has gone through the dataset '", data.name(), "' ",
      data.epochs(),
      " times, which is all that Epochs allows it (visitation: none); schedule less, or leave "
      "Epochs out: then it begins again"));
}

absl::Status Core::RefusalOf(Fingerprint function) const {
  const auto it = refused_.find(function);
  return it == refused_.end() ? absl::OkStatus() : it->second;
}

}  // namespace mu
