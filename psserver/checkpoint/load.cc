#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status.h"
#include "common/checkpoint/tensor_names.h"
#include "psserver/checkpoint/checkpoint.h"
#include "psserver/checkpoint/load_plan.h"
#include "psserver/core/file_memory.h"
#include "psserver/core/file_sum.h"

namespace mu {
namespace {

constexpr size_t kReadBytes = 256 << 10;

// Takes one file's tensors in the order of the file.
class FileLoader {
 public:
  // `new_slots`: no slots are taken: a row's begin with the optimizer's initial values, or go with
  // the row's values where these follow from them.
  // `go_on` (may be null) is asked before each piece is read; its error ends the load.
  FileLoader(const LoadPlan::File& file, bool new_slots, uint64_t low_water,
             LoadedCheckpoint* loaded, const std::function<absl::Status()>& go_on = nullptr)
      : file_(file),
        new_slots_(new_slots),
        loaded_(loaded),
        go_on_(go_on),
        memory_(low_water, &loaded->memory) {}

  absl::Status LoadTensors() {
    MU_RETURN_IF_ERROR(SumHeader());
    for (const TensorEntry& entry : file_.reader.entries()) {
      const auto found = file_.uses.find(&entry);
      if (found != file_.uses.end()) {
        const std::vector<LoadPlan::Use>& uses = found->second;
        MU_RETURN_IF_ERROR(uses.front().table != nullptr ? LoadRows(entry, uses)
                                                         : LoadVariables(entry, uses));
      } else {
        MU_RETURN_IF_ERROR(
            Stream(entry, 1, [](uint64_t, const char*, size_t) { return absl::OkStatus(); }));
      }
    }
    return CheckFileSum(file_.reader.path(), crc_, *file_.proto);
  }

  // The partitions' numbers of updates, and which pushes they contain.
  absl::Status LoadHistory() {
    for (const LoadPlan::Use& use : file_.partitions) {
      const auto name = [&](const char* part) {
        return use.table != nullptr
                   ? TableTensorName(use.table->definition->proto.name(), use.partition, part)
                   : VariableTensorName(use.variable->definition->proto.name(), use.partition,
                                        part);
      };
      MU_ASSIGN_OR_RETURN(const std::vector<int64_t> updates, ReadInts(name("updates")));
      const uint64_t count = updates.size() == 1 ? static_cast<uint64_t>(updates[0]) : 0;
      loaded_->updates += count;
      PartitionKey key{PartitionKey::Kind::kTable, 0, use.partition};
      if (use.table != nullptr) {
        key.id = use.table->definition->proto.id();
        use.table->partitions[use.partition]->SetUpdates(count);
      } else {
        key.kind = PartitionKey::Kind::kVariable;
        key.id = use.variable->definition->proto.id();
        use.variable->partitions[use.partition]->SetUpdates(count);
      }
      MU_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, ReadInts(name("inherits")));
      const absl::Status inherited =
          memory_.Inherit(key, numbers, [this](int64_t number) { return ReadSteps(number); });
      if (absl::IsResourceExhausted(inherited)) return Annotate(inherited, file_.reader.path());
      MU_RETURN_IF_ERROR(inherited);
    }
    return absl::OkStatus();
  }

 private:
  template <typename Consume>
  absl::Status Stream(const TensorEntry& entry, size_t unit, Consume consume) {
    const size_t most = std::max(unit, kReadBytes / unit * unit);
    if (buffer_.size() < most) buffer_.resize(most);
    const uint64_t size = entry.end - entry.begin;
    for (uint64_t offset = 0; offset < size;) {
      const size_t some = static_cast<size_t>(std::min<uint64_t>(most, size - offset));
      if (go_on_ != nullptr) MU_RETURN_IF_ERROR(go_on_());
      MU_RETURN_IF_ERROR(file_.reader.Read(entry, offset, buffer_.data(), some));
      crc_ = ExtendCrc32c(crc_, buffer_.data(), some);
      MU_RETURN_IF_ERROR(consume(offset, buffer_.data(), some));
      offset += some;
    }
    return absl::OkStatus();
  }

  absl::Status SumHeader() {
    std::vector<char> header(file_.reader.data_begin());
    MU_RETURN_IF_ERROR(file_.reader.ReadRaw(0, header.data(), header.size()));
    crc_ = ExtendCrc32c(0, header.data(), header.size());
    return absl::OkStatus();
  }

  absl::Status LoadVariables(const TensorEntry& entry, const std::vector<LoadPlan::Use>& uses) {
    if (entry.end == entry.begin) return absl::OkStatus();
    return Stream(entry, entry.end - entry.begin, [&](uint64_t, const char* bytes, size_t) {
      for (const LoadPlan::Use& use : uses) {
        VariablePartition* const partition = use.variable->partitions[use.partition].get();
        if (use.part == 0 && new_slots_) {
          partition->Assign(bytes);
        } else if (use.part == 0) {
          partition->SetValue(bytes);
        } else {
          partition->SetSlot(use.part - 1, reinterpret_cast<const float*>(bytes));
        }
      }
      return absl::OkStatus();
    });
  }

  // The plan has seen that a row has as many numbers in each of them as in the file, whose ids they
  // share.
  absl::Status LoadRows(const TensorEntry& entry, const std::vector<LoadPlan::Use>& uses) {
    MU_RETURN_IF_ERROR(ReadIds(*uses.front().ids));
    for (const LoadPlan::Use& use : uses) {
      MU_RETURN_IF_ERROR(CheckIds(*use.table->partitions[use.partition]));
      if (use.part == 0) loaded_->rows += ids_.size();
    }
    const size_t row_bytes =
        uses.front().table->definition->ColumnsOf(uses.front().part).count * sizeof(float);
    return Stream(entry, row_bytes, [&](uint64_t offset, const char* bytes, size_t size) {
      const auto ids = absl::MakeConstSpan(ids_).subspan(offset / row_bytes, size / row_bytes);
      for (const LoadPlan::Use& use : uses) {
        TablePartition* const partition = use.table->partitions[use.partition].get();
        const TableDefinition::Columns columns = use.table->definition->ColumnsOf(use.part);
        const float* const values = reinterpret_cast<const float*>(bytes);
        if (new_slots_) {
          partition->AssignRows(ids, values);  // values are all that is taken
        } else {
          partition->SetColumns(ids, columns.begin, columns.count, values);
        }
      }
      return absl::OkStatus();
    });
  }

  // Into ids_, unless they are there.
  absl::Status ReadIds(const TensorEntry& entry) {
    if (ids_of_ == &entry) return absl::OkStatus();
    ids_of_ = nullptr;
    held_by_.clear();
    ids_.resize((entry.end - entry.begin) / sizeof(int64_t));
    MU_RETURN_IF_ERROR(file_.reader.Read(entry, 0, ids_.data(), ids_.size() * sizeof(int64_t)));
    ids_of_ = &entry;
    return absl::OkStatus();
  }

  // That the partition holds all of ids_.
  absl::Status CheckIds(const TablePartition& partition) {
    if (held_by_.contains(&partition)) return absl::OkStatus();
    for (const int64_t id : ids_) {
      if (!partition.Holds(id)) {
        return absl::DataLossError(
            absl::StrCat("the checkpoint's ", ids_of_->name, " holds id ", id,
                         ", which does not belong there; was the table's size or number of "
                         "partitions another one?"));
      }
    }
    held_by_.insert(&partition);
    return absl::OkStatus();
  }

  // All numbers of a tensor; none if it is not there, as in files of earlier programs.
  absl::StatusOr<std::vector<int64_t>> ReadInts(const std::string& name) const {
    const TensorEntry* entry = file_.reader.Find(name);
    std::vector<int64_t> values;
    if (entry == nullptr) return values;
    if (entry->dtype != kInt64) return Malformed(name);
    values.resize((entry->end - entry->begin) / sizeof(int64_t));
    MU_RETURN_IF_ERROR(
        file_.reader.Read(*entry, 0, values.data(), values.size() * sizeof(int64_t)));
    return values;
  }

  ReadMemory::Steps ReadSteps(int64_t number) const {
    const std::string name = MemoryTensorName(static_cast<size_t>(number));
    if (number < 0 || (number > 0 && file_.reader.Find(name) == nullptr)) return Malformed(name);
    MU_ASSIGN_OR_RETURN(const std::vector<int64_t> values, ReadInts(name));
    if (values.size() % 4 != 0) return Malformed(name);
    std::vector<AppliedSteps::Range> ranges;
    for (size_t i = 0; i < values.size(); i += 4) {
      const AppliedSteps::Range range{
          static_cast<uint64_t>(values[i]), static_cast<uint32_t>(values[i + 1]),
          static_cast<uint64_t>(values[i + 2]), static_cast<uint64_t>(values[i + 3])};
      if (range.begin >= range.end || range.end > uint64_t{1} << 32 || values[i + 1] < 0 ||
          values[i + 1] > std::numeric_limits<uint32_t>::max()) {
        return Malformed(name);
      }
      ranges.push_back(range);
    }
    return ranges;
  }

  absl::Status Malformed(const std::string& name) const {
    return absl::DataLossError(
        absl::StrCat(file_.reader.path(), ": '", name, "' is missing or malformed"));
  }

  const LoadPlan::File& file_;
  const bool new_slots_;
  LoadedCheckpoint* const loaded_;
  const std::function<absl::Status()> go_on_;
  ReadMemory memory_;
  uint32_t crc_ = 0;
  std::vector<char> buffer_;
  const TensorEntry* ids_of_ = nullptr;
  std::vector<int64_t> ids_;
  std::set<const TablePartition*> held_by_;  // hold all of ids_
};

}  // namespace

absl::Status VerifyCheckpointFiles(const StoreDirectory& store, const std::string& directory,
                                   const CheckpointFiles& files, const pb::TakenValuesProto* take) {
  MU_ASSIGN_OR_RETURN(LoadPlan plan, LoadPlan::Make(store, directory, files, take));
  for (const LoadPlan::File& file : plan.files()) {
    if (!file.partitions.empty()) MU_RETURN_IF_ERROR(VerifySum(file));
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadedCheckpoint> LoadCheckpoint(const StoreDirectory& store,
                                                const std::string& directory,
                                                const CheckpointFiles& files, uint64_t low_water,
                                                const pb::TakenValuesProto* take) {
  MU_ASSIGN_OR_RETURN(LoadPlan plan, LoadPlan::Make(store, directory, files, take));
  LoadedCheckpoint loaded;
  for (const LoadPlan::File& file : plan.files()) {
    if (file.partitions.empty()) continue;
    FileLoader loader(file, !plan.taken().slots(), low_water, &loaded);
    MU_RETURN_IF_ERROR(loader.LoadTensors());
    // Another job's pushes and their numbers mean nothing here.
    if (plan.taken().all()) MU_RETURN_IF_ERROR(loader.LoadHistory());
  }
  return loaded;
}

absl::Status LoadValues(const StoreDirectory& store, const std::string& directory,
                        const CheckpointFiles& files,
                        const std::function<absl::Status(uint64_t bytes)>& reserve,
                        const std::function<absl::Status()>& go_on) {
  MU_ASSIGN_OR_RETURN(LoadPlan plan, LoadPlan::Make(store, directory, files));
  // All of a variable is there already, rows are not.
  uint64_t bytes = UsageOf(store).bytes;
  for (const LoadPlan::File& file : plan.files()) {
    for (const auto& [entry, uses] : file.uses) {
      for (const LoadPlan::Use& use : uses) {
        if (use.table != nullptr) bytes += entry->end - entry->begin;
      }
    }
  }
  MU_RETURN_IF_ERROR(reserve(bytes));
  LoadedCheckpoint loaded;
  for (const LoadPlan::File& file : plan.files()) {
    if (file.partitions.empty()) continue;
    FileLoader loader(file, /*new_slots=*/false, /*low_water=*/0, &loaded, go_on);
    MU_RETURN_IF_ERROR(loader.LoadTensors());
  }
  return absl::OkStatus();
}

}  // namespace mu
