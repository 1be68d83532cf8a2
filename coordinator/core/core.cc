// The core's beginning and end, time, and what checkpoints say of the job. Members are in
// core_members.cc, functions in core_runs.cc, cancelling in core_cancel.cc, the servers' state in
// core_servers.cc.
#include "coordinator/core/core.h"

#include <algorithm>
#include <utility>

#include "coordinator/core/protections.h"

namespace mu {

Core::Core(Options options)
    : options_(options),
      now_(options.started),
      membership_({options.servers, options.heartbeat, options.timeout}),
      queue_(
          options.in_flight,
          [this](uint64_t dataset, WorkerId worker, uint32_t steps) {
            return TakeBatches(dataset, worker, steps);
          },
          options.backup) {}

void Core::Step(absl::Time now, Event event, Actions* actions) {
  now_ = now;
  actions_ = actions;
  std::visit([this](auto& e) { On(e); }, event);
  RepeatAssignments();
  if (std::exchange(install_, false)) {
    for (auto& [id, worker] : workers_) InstallOn(&worker);
  }
  if (std::exchange(dispatch_, false)) Dispatch();
  actions_ = nullptr;
}

void Core::On(event::Tick&) {
  for (const Member& member : membership_.Expire(now_)) {
    Lose(member, "silent",
         absl::StrCat("no heartbeat for ", absl::FormatDuration(options_.timeout)));
  }
  for (auto it = workers_.begin(); it != workers_.end();) {
    const WorkerId id = (it++)->first;  // it may go
    LeaveIfIdle(id);
  }
  if (now_ >= retry_at_) {
    retry_at_ = absl::InfiniteFuture();
    Act(recovery_.Retry());
  }
  if (now_ >= cancellation_.ask_again_at()) Fence();
  FinishRestores();
  StartBackups();
  dispatch_ = true;
}

absl::Time Core::alarm() const {
  absl::Time alarm = std::min(retry_at_, cancellation_.ask_again_at());
  if (!restored_.empty()) alarm = std::min(alarm, old_leases_.last());
  if (assign_again_at_ > now_) alarm = std::min(alarm, assign_again_at_);
  for (const auto& [id, worker] : workers_) alarm = std::min(alarm, worker.leaves_by);
  return alarm;
}

void Core::On(event::Close&) {
  closed_ = true;
  for (const FunctionId id : queue_.CancelAll()) {
    Finish(id, absl::CancelledError("the coordinator is being destroyed"));
  }
  for (auto& [id, worker] : workers_) {
    for (const CallId call : worker.leaving) Do(action::AnswerLeave{call});
    worker.leaving.clear();
  }
  Do(action::InterruptServers{});
  while (!leaving_.empty()) AnswerLeaving(leaving_.begin()->first);
}

void Core::End(absl::Status error) {
  if (!ended_.ok() || closed_) return;
  ended_ = error;
  Do(action::InterruptServers{});  // of a load, which may take long
  for (const FunctionId id : queue_.CancelAll()) Finish(id, error);
  Do(action::Ended{std::move(error)});
}

void Core::On(event::CatalogChanged& e) {
  queue_.RequireVersion(e.routing_version);
  generation_ = e.generation;
  catalog_version_ = e.version;
  install_ = dispatch_ = true;
}

void Core::AddLeases(std::unique_ptr<DataLeases> leases, std::unique_ptr<PerWorkerLeases> own) {
  const uint64_t id = leases->dataset().id();
  leases_[id] = std::move(leases);
  if (own != nullptr) per_worker_[id] = std::move(own);
}

DataLeases* Core::leases(uint64_t dataset) {
  const auto it = leases_.find(dataset);
  return it == leases_.end() ? nullptr : it->second.get();
}

void Core::StartEpoch(uint64_t dataset, uint64_t epoch) {
  if (const auto own = per_worker_.find(dataset); own != per_worker_.end())
    own->second->StartEpoch(epoch);
  if (const auto it = leases_.find(dataset); it != leases_.end()) it->second->StartEpoch(epoch);
}

std::vector<BatchRange> Core::TakeBatches(uint64_t dataset, WorkerId worker, uint32_t steps) {
  if (const auto own = per_worker_.find(dataset); own != per_worker_.end())
    return own->second->Take(worker, steps);
  const auto it = leases_.find(dataset);
  return it == leases_.end() ? std::vector<BatchRange>() : it->second->Take(worker, steps);
}

std::vector<pb::LeaseProto> Core::UpcomingLeases(uint64_t dataset, WorkerId worker) {
  if (const auto own = per_worker_.find(dataset); own != per_worker_.end())
    return own->second->Upcoming(worker);
  const auto it = leases_.find(dataset);
  return it == leases_.end() ? std::vector<pb::LeaseProto>() : it->second->Upcoming(worker);
}

std::vector<pb::DatasetPositionProto> Core::DataPositions() const {
  std::vector<pb::DatasetPositionProto> positions;
  for (const auto& [id, leases] : leases_) {
    if (trained_on_.contains(id)) positions.push_back(leases->Position());
  }
  return positions;
}

absl::Status Core::OutOfData(uint64_t dataset) const {
  const auto own = per_worker_.find(dataset);
  if (own == per_worker_.end()) return absl::OkStatus();
  const pb::DatasetProto& data = own->second->dataset();
  return absl::OutOfRangeError(absl::StrCat(
      "the worker of this function has gone through the dataset '", data.name(), "' ",
      data.epochs(),
      " times, which is all that Epochs allows it (visitation: none); schedule less, or leave "
      "Epochs out: then it begins again"));
}

FunctionId Core::BeginAssignment(FunctionId place) {
  return queue_.AssignmentOpen(place) ? place : queue_.BeginAssignment();
}

bool Core::Assigned(absl::Time now, uint64_t token, FunctionId place,
                    std::shared_ptr<const Assignment> assignment, Actions* actions) {
  if (!queue_.AssignmentOpen(place)) return false;
  if (recovery_enabled_) {
    if (servers_lost_ != token || !serving()) return false;
  } else if (queue_.scheduled()) {
    queue_.EndAssignment(place);
    return true;
  }
  // Before anything was scheduled, recovery may still be enabled: then it belongs to what a lost
  // server makes repeat.
  queue_.Assigned(place, std::move(assignment));
  now_ = now;
  actions_ = actions;
  NoteKept();
  actions_ = nullptr;
  return true;
}

absl::Status Core::StateLoaded(absl::Time now, uint64_t token, Generation generation,
                               CheckpointNumber point, FunctionId next,
                               const std::vector<uint64_t>& updates,
                               const std::vector<uint64_t>& acknowledged, Actions* actions) {
  if (!ended_.ok()) return ended_;
  if (servers_lost_ != token)
    return absl::UnavailableError("a server was lost while values were loaded");
  if (queue_.unfinished() > 0)
    return absl::UnavailableError("functions were scheduled while values were loaded");
  now_ = now;
  actions_ = actions;
  failures_.Continue(updates, acknowledged.empty() ? updates : acknowledged);
  queue_.StartFrom(point, next);
  Act(recovery_.Loaded(generation, point));
  actions_ = nullptr;
  return absl::OkStatus();
}

void Core::Resume(absl::Time now, CheckpointNumber point, const JobPosition& position,
                  const std::set<uint64_t>& datasets, Actions* actions) {
  for (const auto& [id, function] : position.functions.unfinished) {
    const uint64_t dataset = function.work.dataset;
    if (dataset != 0 && !per_worker_.contains(dataset)) trained_on_.insert(dataset);
  }
  trained_on_.insert(datasets.begin(), datasets.end());
  queue_.Resume(point, position.functions);
  trained_steps_ = position.steps;
  trained_samples_ = position.samples;
  now_ = now;
  actions_ = actions;
  Dispatch();
  actions_ = nullptr;
}

absl::Status Core::RefusalOf(Fingerprint function) const {
  const auto it = refused_.find(function);
  return it == refused_.end() ? absl::OkStatus() : it->second;
}

}  // namespace mu
