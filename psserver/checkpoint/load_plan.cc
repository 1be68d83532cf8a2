#include "psserver/checkpoint/load_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/cannot_read.h"
#include "common/base/crc32c.h"
#include "common/base/status.h"
#include "common/checkpoint/tensor_names.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "psserver/core/file_sum.h"

namespace mu {

TakenNames::TakenNames(const pb::TakenValuesProto* take)
    : all_(take == nullptr), slots_(all_ || take->slots()) {
  if (all_) return;
  for (const pb::TakenValuesProto::Name& name : take->names()) from_[name.own()] = name.from();
}

const std::string* TakenNames::Find(const std::string& own) const {
  if (all_) return &own;
  const auto it = from_.find(own);
  return it == from_.end() ? nullptr : &it->second;
}

absl::StatusOr<LoadPlan> LoadPlan::Make(const StoreDirectory& store, const std::string& directory,
                                        const CheckpointFiles& files,
                                        const pb::TakenValuesProto* take) {
  LoadPlan plan(take);
  MU_RETURN_IF_ERROR(plan.Open(directory, files));
  const auto find_all = [&]() -> absl::Status {
    for (const StoredVariable* variable : store.SortedVariables()) {
      for (uint32_t p = 0; p < variable->partitions.size(); ++p) {
        if (variable->partitions[p] != nullptr) MU_RETURN_IF_ERROR(plan.AddVariable(*variable, p));
      }
    }
    for (const StoredTable* table : store.SortedTables()) {
      for (uint32_t p = 0; p < table->partitions.size(); ++p) {
        if (table->partitions[p] != nullptr) MU_RETURN_IF_ERROR(plan.AddTable(*table, p));
      }
    }
    return absl::OkStatus();
  };
  const absl::Status found = find_all();
  if (!found.ok() || !plan.absent_.empty()) {
    // A damaged header may hide what is there: then that is the news.
    for (const File& file : plan.files_) MU_RETURN_IF_ERROR(VerifySum(file));
  }
  MU_RETURN_IF_ERROR(found);
  MU_RETURN_IF_ERROR(plan.CheckAbsent(store));
  return plan;
}

// Whole files without a partition were written before it was created. Files that share nothing with
// the model are no such thing.
absl::Status LoadPlan::CheckAbsent(const StoreDirectory& store) const {
  if (absent_.empty()) return absl::OkStatus();
  if (!taken_.all()) {
    return absl::DataLossError(absl::StrCat("no file of the checkpoint has '", absent_.front(),
                                            "', with which this job is to begin (files: ", names_,
                                            ")"));
  }
  bool known = false;
  for (const File& file : files_) {
    for (const StoredVariable* variable : store.SortedVariables()) {
      const std::string& name = variable->definition->proto.name();
      known |= file.reader.Find(VariableTensorName(name, 0, "value")) != nullptr;
    }
    for (const StoredTable* table : store.SortedTables()) {
      const std::string& name = table->definition->proto.name();
      known |= file.reader.Find(TableTensorName(name, 0, "ids")) != nullptr;
    }
  }
  if (!known) {
    return absl::DataLossError(absl::StrCat("no file of the checkpoint has '", absent_.front(),
                                            "' or anything else of ", "this model (files: ", names_,
                                            "); is it a checkpoint of another model?"));
  }
  MU_LOG(INFO, "{} partitions are younger than the checkpoint and have their initial values: {}{}",
         absent_.size(), absent_.front(), absent_.size() > 1 ? ", ..." : "");
  return absl::OkStatus();
}

absl::Status LoadPlan::Open(const std::string& directory, const CheckpointFiles& files) {
  files_.reserve(static_cast<size_t>(files.size()));
  for (const pb::CheckpointFileProto& file : files) {
    MU_RETURN_IF_ERROR(CheckFileName(file.name()));
    const std::string path = JoinPath(directory, file.name());
    const absl::StatusOr<uint64_t> looked = FileSize(path);
    if (!looked.ok()) return CannotRead(looked.status());
    MU_RETURN_IF_ERROR(CheckFileSize(path, *looked, file));
    MU_ASSIGN_OR_RETURN(SafetensorsReader reader, SafetensorsReader::Open(path));
    files_.push_back({&file, std::move(reader), {}, {}});
    if (!names_.empty()) names_ += ", ";
    names_ += file.name();
  }
  return absl::OkStatus();
}

LoadPlan::File* LoadPlan::FileWith(const std::string& name) {
  for (File& file : files_) {
    if (file.reader.Find(name) != nullptr) return &file;
  }
  absent_.push_back(name);
  return nullptr;
}

absl::Status LoadPlan::Expect(const File& file, const std::string& name, DType dtype,
                              const std::vector<int64_t>& shape, const TensorEntry** entry) {
  *entry = file.reader.Find(name);
  if (*entry == nullptr)
    return absl::DataLossError(absl::StrCat(file.reader.path(), " has no '", name, "'"));
  if ((*entry)->dtype == dtype && (*entry)->shape == shape) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint's '", name, "' has another type or shape than the model's; a ",
                   "variable needs the partitioner with which it was saved"));
}

absl::Status LoadPlan::AddVariable(const StoredVariable& variable, uint32_t p) {
  const VariableDefinition& definition = *variable.definition;
  const std::string* const taken = taken_.Find(definition.proto.name());
  if (taken == nullptr) return absl::OkStatus();
  const std::string& name = *taken;
  File* const file = FileWith(VariableTensorName(name, p, "value"));
  if (file == nullptr) return absl::OkStatus();
  file->partitions.push_back({&variable, nullptr, p});
  for (size_t part = 0; part < (taken_.slots() ? definition.parts() : 1); ++part) {
    const DType dtype = part == 0 ? definition.proto.dtype() : kFloat32;
    const TensorEntry* entry;
    MU_RETURN_IF_ERROR(Expect(*file,
                              VariableTensorName(name, p, part == 0 ? "value" : SlotPart(part - 1)),
                              dtype, VariablePartShape(definition, p, part), &entry));
    file->uses[entry].push_back({&variable, nullptr, p, part, nullptr});
  }
  return absl::OkStatus();
}

absl::Status LoadPlan::AddTable(const StoredTable& table, uint32_t p) {
  const TableDefinition& definition = *table.definition;
  const std::string* const taken = taken_.Find(definition.proto.name());
  if (taken == nullptr) return absl::OkStatus();
  const std::string& name = *taken;
  const std::string ids_name = TableTensorName(name, p, "ids");
  File* const file = FileWith(ids_name);
  if (file == nullptr) return absl::OkStatus();
  file->partitions.push_back({nullptr, &table, p});
  const TensorEntry* ids = file->reader.Find(ids_name);
  const int64_t rows = ids->shape.size() == 1 ? ids->shape[0] : -1;
  MU_RETURN_IF_ERROR(Expect(*file, ids_name, kInt64, {rows}, &ids));
  for (size_t part = 0; part < (taken_.slots() ? definition.parts() : 1); ++part) {
    const int64_t columns = static_cast<int64_t>(definition.ColumnsOf(part).count);
    const TensorEntry* entry;
    MU_RETURN_IF_ERROR(Expect(*file,
                              TableTensorName(name, p, part == 0 ? "values" : SlotPart(part - 1)),
                              kFloat32, {rows, columns}, &entry));
    file->uses[entry].push_back({nullptr, &table, p, part, ids});
  }
  return absl::OkStatus();
}

absl::Status VerifySum(const LoadPlan::File& file) {
  constexpr uint64_t kReadBytes = 256 << 10;
  std::vector<char> buffer(kReadBytes);
  uint32_t crc = 0;
  for (uint64_t offset = 0; offset < file.reader.file_bytes();) {
    const uint64_t some = std::min(kReadBytes, file.reader.file_bytes() - offset);
    MU_RETURN_IF_ERROR(file.reader.ReadRaw(offset, buffer.data(), some));
    crc = ExtendCrc32c(crc, buffer.data(), some);
    offset += some;
  }
  return CheckFileSum(file.reader.path(), crc, *file.proto);
}

}  // namespace mu
