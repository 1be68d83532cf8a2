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
          options.backup),
      reset_servers_(options.epoch > CoordinatorEpoch(1)) {}

void Core::Step(absl::Time now, Event event, Actions* actions) {
  now_ = now;
  actions_ = actions;
  std::visit([this](auto& e) { On(e); }, event);
  DoTasks();
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
  if (work_again_at_ > now_) alarm = std::min(alarm, work_again_at_);
  for (const Task& task : tasks_) {
    if (task.not_before > now_) alarm = std::min(alarm, task.not_before);
  }
  for (const auto& [id, worker] : workers_) alarm = std::min(alarm, worker.leaves_by);
  return alarm;
}

void Core::On(event::Close&) {
  closed_ = true;
  const absl::Status closed = absl::CancelledError("the coordinator is being destroyed");
  for (const FunctionId id : queue_.CancelAll()) Finish(id, closed);
  Act(commit_.GiveUp(closed));
  VoidWork();
  AnswerAll(closed);
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
  Act(commit_.GiveUp(error));
  VoidWork();
  AnswerAll(error);
  Do(action::Ended{std::move(error)});
}

void Core::On(event::CatalogChanged& e) {
  queue_.RequireVersion(e.routing_version);
  generation_ = e.generation;
  catalog_version_ = e.version;
  parameters_ = e.parameters;
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

absl::Status Core::RefusalOf(Fingerprint function) const {
  const auto it = refused_.find(function);
  return it == refused_.end() ? absl::OkStatus() : it->second;
}

}  // namespace mu
