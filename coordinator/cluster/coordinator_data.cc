// Datasets of the coordinator: files, epochs, batches.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/graph/dataset_schema.h"
#include "common/records/dataset_files.h"
#include "common/records/vocabulary.h"
#include "coordinator/cluster/coordinator_impl.h"
#include "coordinator/cluster/layout_store.h"

namespace mu {
namespace {

// Leaves what a plan needs. Contents that tell one dataset from another become their hashes.
void ForgetContents(pb::DatasetProto* dataset) {
  const auto hash = [](std::string* contents) {
    *contents = absl::StrCat(absl::Hex(HashString(*contents), absl::kZeroPad16));
  };
  dataset->clear_files();
  for (pb::CompanionFilesProto& companion : *dataset->mutable_companions()) companion.clear_files();
  for (pb::InlineFileProto& file : *dataset->mutable_inline_files()) {
    file.clear_path();
    hash(file.mutable_contents());
  }
  FieldColumnList* const columns = MutableFieldColumnsOf(dataset);
  if (columns == nullptr) return;
  for (pb::CsvColumnProto& column : *columns) {
    column.clear_vocabulary_file();
    if (!column.vocabulary().empty()) hash(column.mutable_vocabulary());
  }
}

}  // namespace

absl::StatusOr<Dataset> Coordinator::CreateDataset(const DatasetSpec& spec) {
  MU_ASSIGN_OR_RETURN(pb::DatasetProto proto, spec.ToProto());
  return CreateDataset(std::move(proto));
}

absl::StatusOr<Dataset> Coordinator::CreateDataset(pb::DatasetProto proto) {
  if (proto.batch_size() == 0)
    return absl::InvalidArgumentError("a dataset needs a batch size of at least 1");
  MU_RETURN_IF_ERROR(
      Annotate(ReadVocabularies(&proto), absl::StrCat("dataset '", proto.name(), "'")));
  if (proto.seed() == 0) proto.set_seed(impl_->options.seed);
  if (proto.block_records() == 0) proto.set_block_records(DefaultBlockRecords(proto));
  MutexLock lock(&impl_->data_mutex);
  impl_->runtime->ChangeCatalog([&](Catalog& catalog) { proto = catalog.AddDataset(proto); });
  // A checkpoint's position knows them by their names; created in the same order they are the same.
  const auto taken = [&](const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl_->data_mutex) {
    return std::any_of(impl_->datasets.begin(), impl_->datasets.end(),
                       [&](const auto& other) { return other.second.name() == name; });
  };
  if (proto.name().empty()) proto.set_name(absl::StrCat("dataset ", proto.id()));
  const std::string name = proto.name();
  for (int i = 2; taken(proto.name()); ++i) proto.set_name(absl::StrCat(name, " (", i, ")"));
  impl_->datasets[proto.id()] = proto;
  // Handles are for tracing: what travels to the workers stays here.
  proto.clear_inline_files();
  Dataset handle(std::move(proto));
  handle.owner_ = this;
  return handle;
}

absl::Status Coordinator::Check(const Dataset& dataset) const {
  if (!dataset.valid()) return absl::InvalidArgumentError("this Dataset handle is empty");
  if (dataset.owner_ == this) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the data set '", dataset.name(),
                   "' was not created by this coordinator; use what its CreateDataset returned"));
}

absl::Status Coordinator::CheckReads(const Function& function, const Dataset& dataset) const {
  MU_RETURN_IF_ERROR(Check(function));
  MU_RETURN_IF_ERROR(Check(dataset));
  const uint64_t reads = function.proto().dataset();
  if (reads == dataset.proto().id()) return absl::OkStatus();
  if (reads == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("function '", function.name(), "' reads no data set, and '", dataset.name(),
                     "' was given with it; let the function read it with NextBatch"));
  }
  std::string other;
  {
    MutexLock lock(&impl_->data_mutex);
    if (const auto known = impl_->datasets.find(reads); known != impl_->datasets.end())
      other = known->second.name();
  }
  return absl::InvalidArgumentError(absl::StrCat("function '", function.name(),
                                                 "' reads the data set '", other, "', not '",
                                                 dataset.name(), "', which was given with it"));
}

std::optional<DataLayout> Coordinator::Impl::Prepared(uint64_t id) {
  MutexLock lock(&data_mutex);
  const auto known = prepared.find(id);
  return known == prepared.end() ? std::nullopt : std::optional<DataLayout>(known->second);
}

absl::StatusOr<DataLayout> Coordinator::Impl::PrepareDataset(
    uint64_t id, const std::function<absl::Status()>& may) {
  if (auto known = Prepared(id)) return *std::move(known);
  MutexLock preparing(&prepare_mutex);
  if (auto known = Prepared(id)) return *std::move(known);
  if (may) MU_RETURN_IF_ERROR(may());
  pb::DatasetProto dataset;
  {
    MutexLock lock(&data_mutex);
    const auto it = datasets.find(id);
    if (it == datasets.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no dataset ", id, " in this coordinator"));
    }
    dataset = it->second;
  }
  const std::string context = absl::StrCat("dataset '", dataset.name(), "'");
  if (const absl::Status expanded = ExpandDatasetFiles(&dataset); !expanded.ok())
    return Annotate(expanded, context);
  const LayoutStore store(options.job_dir.empty() ? "" : options.job_dir + "/layouts");
  const auto found = store.Complete(dataset, [&](const auto& unknown, const auto& add) {
    ScopedSpan span(runtime->options().telemetry, "scan_files", dataset.name());
    return runtime->ScanFiles(dataset, unknown, add);
  });
  if (!found.ok()) return Annotate(found.status(), context);
  DataLayout data = {.dataset = dataset};
  ForgetContents(&data.dataset);
  data.files = std::make_shared<const std::vector<FileLayout>>(found->begin(), found->end());
  MU_ASSIGN_OR_RETURN(DataLeases::Plan first, runtime->MakePlan(data, 0));
  runtime->ChangeCatalog([&](Catalog& catalog) { catalog.UpdateDataset(dataset); });
  runtime->AddDataset(data, std::move(first));
  MutexLock lock(&data_mutex);
  datasets[id] = std::move(dataset);
  return prepared[id] = std::move(data);
}

absl::StatusOr<DataProgress> Coordinator::ProgressOf(const Dataset& dataset) {
  MU_RETURN_IF_ERROR(Check(dataset));
  if (dataset.proto().visitation() == pb::VISITATION_NONE) {
    return absl::InvalidArgumentError(
        absl::StrCat("every worker reads the dataset '", dataset.name(),
                     "' by itself (visitation: none), so it has no progress; ask StepsTaken"));
  }
  MU_ASSIGN_OR_RETURN(const DataLayout data, impl_->PrepareDataset(dataset.proto().id()));
  const Runtime::Handed handed = impl_->runtime->HandedOut(dataset.proto().id());
  return ProgressAfter(data, {handed.epoch, handed.left}, handed.unbound);
}

absl::StatusOr<uint64_t> Coordinator::StepsTaken(const Dataset& dataset) {
  MU_RETURN_IF_ERROR(Check(dataset));
  if (dataset.proto().visitation() != pb::VISITATION_NONE) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers share the dataset '", dataset.name(), "'; ask ProgressOf"));
  }
  MU_RETURN_IF_ERROR(impl_->PrepareDataset(dataset.proto().id()).status());
  const Runtime::Handed handed = impl_->runtime->HandedOut(dataset.proto().id());
  return handed.taken + handed.unbound;
}

absl::StatusOr<uint64_t> Coordinator::BatchesInEpoch(const Dataset& dataset, uint64_t epoch) {
  MU_RETURN_IF_ERROR(Check(dataset));
  MU_ASSIGN_OR_RETURN(const DataLayout data, impl_->PrepareDataset(dataset.proto().id()));
  return EpochPlan::CountBatches(data, epoch);
}

absl::StatusOr<std::vector<uint32_t>> Coordinator::BatchesOfLeases(const Dataset& dataset,
                                                                   uint64_t epoch) {
  MU_RETURN_IF_ERROR(Check(dataset));
  MU_ASSIGN_OR_RETURN(const DataLayout data, impl_->PrepareDataset(dataset.proto().id()));
  return EpochPlan::BatchesOfLeases(data, epoch);
}

absl::StatusOr<std::map<uint64_t, uint32_t>> Coordinator::BatchesByLease(const Dataset& dataset) {
  MU_RETURN_IF_ERROR(Check(dataset));
  MU_ASSIGN_OR_RETURN(const DataLayout data, impl_->PrepareDataset(dataset.proto().id()));
  DataLeases::Plan plan = impl_->runtime->HandedOut(dataset.proto().id()).plan;
  if (plan == nullptr) {
    MU_ASSIGN_OR_RETURN(plan, impl_->runtime->MakePlan(data, 0));
  }
  std::map<uint64_t, uint32_t> batches;
  for (const auto& planned : plan->leases()) batches[planned.lease->index()] = planned.batches;
  return batches;
}

absl::Status Coordinator::StartEpoch(const Dataset& dataset, uint64_t epoch,
                                     const std::atomic<int>* stop) {
  MU_RETURN_IF_ERROR(Check(dataset));
  MU_ASSIGN_OR_RETURN(const DataLayout data, impl_->PrepareDataset(dataset.proto().id()));
  MU_ASSIGN_OR_RETURN(DataLeases::Plan plan, impl_->runtime->MakePlan(data, epoch));
  return impl_->runtime->StartEpoch(dataset.proto().id(), epoch, std::move(plan), stop);
}

}  // namespace mu
