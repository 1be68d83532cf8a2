// Datasets of the coordinator: files, epochs, batches.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/env/glob.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/cluster/layout_store.h"

namespace mu {

absl::StatusOr<Dataset> Coordinator::CreateDataset(const DatasetSpec& spec) {
  MU_ASSIGN_OR_RETURN(pb::DatasetProto proto, spec.ToProto());
  return CreateDataset(std::move(proto));
}

absl::StatusOr<Dataset> Coordinator::CreateDataset(pb::DatasetProto proto) {
  if (proto.batch_size() == 0)
    return absl::InvalidArgumentError("a dataset needs a batch size of at least 1");
  if (proto.seed() == 0) proto.set_seed(options_.seed);
  if (proto.block_records() == 0) proto.set_block_records(DefaultBlockRecords(proto));
  MutexLock lock(&data_mutex_);
  runtime_->ChangeCatalog([&](Catalog& catalog) { proto = catalog.AddDataset(proto); });
  // A checkpoint's position knows them by their names; created in the same order they are the same.
  const auto taken = [&](const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(data_mutex_) {
    return std::any_of(datasets_.begin(), datasets_.end(),
                       [&](const auto& other) { return other.second.name() == name; });
  };
  if (proto.name().empty()) proto.set_name(absl::StrCat("dataset ", proto.id()));
  const std::string name = proto.name();
  for (int i = 2; taken(proto.name()); ++i) proto.set_name(absl::StrCat(name, " (", i, ")"));
  datasets_[proto.id()] = proto;
  return Dataset(proto);
}

absl::Status Coordinator::PrepareDataset(uint64_t id) {
  if (prepared_[id]) return absl::OkStatus();
  const auto it = datasets_.find(id);
  if (it == datasets_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no dataset ", id, " in this coordinator"));
  }
  pb::DatasetProto dataset = it->second;
  const std::string context = absl::StrCat("dataset '", dataset.name(), "'");
  std::vector<std::string> files;
  for (const auto& pattern : dataset.files()) {
    auto matches = ExpandFiles(pattern);
    if (!matches.ok()) return Annotate(matches.status(), context);
    files.insert(files.end(), matches->begin(), matches->end());
  }
  dataset.clear_files();
  for (auto& file : files) dataset.add_files(std::move(file));
  const LayoutStore store(options_.job_dir.empty() ? "" : options_.job_dir + "/layouts");
  const auto found = store.Complete(dataset, [&](const auto& unknown, const auto& add) {
    ScopedSpan span(runtime_->options().telemetry, "scan_files", dataset.name());
    return runtime_->ScanFiles(dataset, unknown, add);
  });
  if (!found.ok()) return Annotate(found.status(), context);
  std::vector<FileLayout> layouts;
  for (const auto& layout : *found) layouts.emplace_back(layout);
  std::unique_ptr<PerWorkerLeases> own;
  if (dataset.visitation() == pb::VISITATION_NONE)
    own = std::make_unique<PerWorkerLeases>(dataset, layouts);
  auto leases = std::make_unique<DataLeases>(dataset, std::move(layouts));
  if (!leases->status().ok()) return leases->status();
  runtime_->ChangeCatalog([&](Catalog& catalog) { catalog.UpdateDataset(dataset); });
  runtime_->AddLeases(std::move(leases), std::move(own));
  it->second = dataset;
  prepared_[id] = true;
  return absl::OkStatus();
}

absl::StatusOr<DataProgress> Coordinator::ProgressOf(const Dataset& dataset) {
  if (dataset.proto().visitation() == pb::VISITATION_NONE) {
    return absl::InvalidArgumentError(
        absl::StrCat("every worker reads the dataset '", dataset.name(),
                     "' by itself (visitation: none), so it has no progress"));
  }
  MutexLock lock(&data_mutex_);
  MU_RETURN_IF_ERROR(PrepareDataset(dataset.proto().id()));
  const uint64_t id = dataset.proto().id();
  DataProgress progress;
  // A function that is bound to its batches between the two looks would count twice.
  uint64_t unbound = runtime_->UnboundSteps(id);
  for (bool same = false; !same;) {
    uint64_t waiting = unbound;
    runtime_->WithLeases(id, [&](DataLeases& leases) {
      progress.epoch = leases.epoch();
      progress.left = leases.left();
      // Functions that wait take their batches in order, from later epochs as well.
      while (waiting > progress.left) {
        waiting -= progress.left;
        progress.left = leases.BatchesInEpoch(++progress.epoch);
        if (progress.left == 0) waiting = 0;
      }
    });
    progress.left -= waiting;
    same = std::exchange(unbound, runtime_->UnboundSteps(id)) == unbound;
  }
  return progress;
}

absl::StatusOr<uint64_t> Coordinator::BatchesInEpoch(const Dataset& dataset, uint64_t epoch) {
  MutexLock lock(&data_mutex_);
  MU_RETURN_IF_ERROR(PrepareDataset(dataset.proto().id()));
  uint64_t batches = 0;
  runtime_->WithLeases(dataset.proto().id(),
                       [&](DataLeases& leases) { batches = leases.BatchesInEpoch(epoch); });
  return batches;
}

absl::StatusOr<std::map<uint64_t, uint32_t>> Coordinator::BatchesByLease(const Dataset& dataset) {
  MutexLock lock(&data_mutex_);
  MU_RETURN_IF_ERROR(PrepareDataset(dataset.proto().id()));
  std::map<uint64_t, uint32_t> batches;
  runtime_->WithLeases(dataset.proto().id(), [&](DataLeases& leases) {
    for (const auto& planned : leases.plan().leases())
      batches[planned.lease->index()] = planned.batches;
  });
  return batches;
}

absl::Status Coordinator::StartEpoch(const Dataset& dataset, uint64_t epoch) {
  MutexLock lock(&data_mutex_);
  MU_RETURN_IF_ERROR(PrepareDataset(dataset.proto().id()));
  MU_RETURN_IF_ERROR(runtime_->WaitForRepeats());
  runtime_->StartEpoch(dataset.proto().id(), epoch);
  return absl::OkStatus();
}

}  // namespace mu
