// Who reads what, as the runtime sees it: one position for all workers, or one for each.
#include "absl/strings/str_cat.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

void Runtime::AddLeases(std::unique_ptr<DataLeases> leases, std::unique_ptr<PerWorkerLeases> own) {
  MutexLock lock(&mutex_);
  const uint64_t id = leases->dataset().id();
  leases_[id] = std::move(leases);
  if (own != nullptr) per_worker_[id] = std::move(own);
}

bool Runtime::WithLeases(uint64_t dataset, const std::function<void(DataLeases&)>& look) {
  MutexLock lock(&mutex_);
  const auto it = leases_.find(dataset);
  if (it == leases_.end()) return false;
  look(*it->second);
  return true;
}

void Runtime::StartEpoch(uint64_t dataset, uint64_t epoch) {
  MutexLock lock(&mutex_);
  if (const auto own = per_worker_.find(dataset); own != per_worker_.end())
    own->second->StartEpoch(epoch);
  if (const auto it = leases_.find(dataset); it != leases_.end()) it->second->StartEpoch(epoch);
}

std::vector<BatchRange> Runtime::TakeBatches(uint64_t dataset, WorkerId worker, uint32_t steps) {
  if (const auto own = per_worker_.find(dataset); own != per_worker_.end())
    return own->second->Take(worker, steps);
  const auto it = leases_.find(dataset);
  return it == leases_.end() ? std::vector<BatchRange>() : it->second->Take(worker, steps);
}

std::vector<pb::LeaseProto> Runtime::UpcomingLeases(uint64_t dataset, WorkerId worker) {
  if (const auto own = per_worker_.find(dataset); own != per_worker_.end())
    return own->second->Upcoming(worker);
  const auto it = leases_.find(dataset);
  return it == leases_.end() ? std::vector<pb::LeaseProto>() : it->second->Upcoming(worker);
}

void Runtime::ForgetReader(WorkerId worker) {
  for (auto& [dataset, leases] : leases_) leases->Forget(worker);
  for (auto& [dataset, leases] : per_worker_) leases->Forget(worker);
}

absl::Status Runtime::CompletedWithoutRun(FunctionId id) const {
  const auto state = states_.find(id);
  if (state == states_.end() || state->second->HasSteps()) return absl::OkStatus();
  const auto own = per_worker_.find(state->second->dataset());
  if (own == per_worker_.end()) return absl::OkStatus();
  const pb::DatasetProto& dataset = own->second->dataset();
  return absl::OutOfRangeError(
      absl::StrCat("the worker of this function has gone through the dataset '", dataset.name(),
                   "' ", dataset.epochs(),
                   " times, which is all that Epochs allows it (visitation: none); schedule less, "
                   "or leave Epochs out: then it "
                   "begins again"));
}

}  // namespace mu
