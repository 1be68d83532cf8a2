#include "psserver/store/store.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/sharding/routing.h"

namespace mu {
namespace {

absl::Status Contradiction(absl::string_view kind, const std::string& name, uint32_t id) {
  return absl::FailedPreconditionError(
      absl::StrCat(kind, " '", name, "' (id ", id,
                   ") is configured here already, with another definition or placement"));
}

// A partition, or what has no room in this server's memory, and what helps.
template <typename Partition, typename Definition>
absl::StatusOr<std::unique_ptr<Partition>> CreatePartition(
    const std::shared_ptr<const Definition>& definition, uint32_t number) {
  auto partition = Partition::Create(definition, number);
  if (!absl::IsResourceExhausted(partition.status())) return partition;
  return absl::ResourceExhaustedError(
      absl::StrCat(std::is_same_v<Partition, TablePartition> ? "table '" : "variable '",
                   definition->proto.name(), "': ", partition.status().message(),
                   "; start more servers, or give it fewer rows or columns"));
}

// Whether the variable or table is `there`. FAILED_PRECONDITION: as another one.
template <typename Stored, typename Proto>
absl::StatusOr<bool> IsHere(const Stored* there, absl::string_view kind, const Proto& proto) {
  if (there == nullptr) return false;
  if (there->definition->proto.SerializeAsString() == proto.SerializeAsString()) return true;
  return Contradiction(kind, proto.name(), proto.id());
}

absl::Status CheckPlacedVariable(const pb::VariableProto& proto) {
  MU_RETURN_IF_ERROR(CheckVariable(proto));
  if (proto.placement_size() == proto.partition_starts_size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("variable '", proto.name(), "' does not have one server for each partition"));
}

// Values and slots of the partitions on server `index`. CheckPlacedVariable has looked at it.
uint64_t BytesOn(uint32_t index, const pb::VariableProto& proto) {
  const VariableDefinition definition(proto);
  uint64_t bytes = 0;
  for (int p = 0; p < proto.placement_size(); ++p) {
    if (proto.placement(p) != index) continue;
    const uint32_t partition = static_cast<uint32_t>(p);
    bytes += definition.BytesOf(partition) + definition.SlotBytesOf(partition);
  }
  return bytes;
}

// CheckPlacedVariable has looked at it.
absl::StatusOr<std::shared_ptr<StoredVariable>> MakeVariable(const pb::VariableProto& proto,
                                                             uint32_t index) {
  auto variable = std::make_shared<StoredVariable>();
  variable->definition = std::make_shared<const VariableDefinition>(proto);
  variable->partitions.resize(proto.placement_size());
  for (uint32_t p = 0; p < variable->partitions.size(); ++p) {
    if (proto.placement(static_cast<int>(p)) != index) continue;
    MU_ASSIGN_OR_RETURN(variable->partitions[p],
                        CreatePartition<VariablePartition>(variable->definition, p));
  }
  return variable;
}

absl::StatusOr<std::shared_ptr<StoredTable>> MakeTable(const pb::TableProto& proto,
                                                       uint32_t index) {
  MU_RETURN_IF_ERROR(CheckTable(proto));
  if (static_cast<uint32_t>(proto.placement_size()) != proto.partitions()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", proto.name(), "' does not have one server for each partition"));
  }
  auto table = std::make_shared<StoredTable>();
  table->definition = std::make_shared<const TableDefinition>(proto);
  table->partitions.resize(proto.partitions());
  for (uint32_t p = 0; p < table->partitions.size(); ++p) {
    if (proto.placement(static_cast<int>(p)) != index) continue;
    MU_ASSIGN_OR_RETURN(table->partitions[p],
                        CreatePartition<TablePartition>(table->definition, p));
  }
  return table;
}

// As `from`, of whose partitions it has those that are there, but with no optimizer.
template <typename Stored, typename Definition, typename Partition>
absl::StatusOr<std::shared_ptr<Stored>> ItemWithoutSlots(const Stored& from) {
  auto proto = from.definition->proto;
  proto.clear_optimizer();
  auto item = std::make_shared<Stored>();
  item->definition = std::make_shared<const Definition>(proto);
  item->partitions.resize(from.partitions.size());
  for (uint32_t p = 0; p < from.partitions.size(); ++p) {
    if (from.partitions[p] == nullptr) continue;
    MU_ASSIGN_OR_RETURN(item->partitions[p], CreatePartition<Partition>(item->definition, p));
  }
  return item;
}

template <typename Map>
auto Sorted(const Map& map) {
  std::vector<std::pair<uint32_t, decltype(map.begin()->second.get())>> items;
  for (const auto& [id, item] : map) items.emplace_back(id, item.get());
  std::sort(items.begin(), items.end());
  std::vector<decltype(map.begin()->second.get())> result;
  for (const auto& item : items) result.push_back(item.second);
  return result;
}

}  // namespace

std::vector<StoredVariable*> StoreDirectory::SortedVariables() const { return Sorted(variables); }
std::vector<StoredTable*> StoreDirectory::SortedTables() const { return Sorted(tables); }

absl::StatusOr<std::shared_ptr<const StoreDirectory>> WithoutSlots(
    const StoreDirectory& directory) {
  auto values = std::make_shared<StoreDirectory>();
  for (const auto& [id, variable] : directory.variables) {
    MU_ASSIGN_OR_RETURN(
        values->variables[id],
        (ItemWithoutSlots<StoredVariable, VariableDefinition, VariablePartition>(*variable)));
  }
  for (const auto& [id, table] : directory.tables) {
    MU_ASSIGN_OR_RETURN(values->tables[id],
                        (ItemWithoutSlots<StoredTable, TableDefinition, TablePartition>(*table)));
  }
  return values;
}

std::shared_ptr<const StoreDirectory> Store::directory() const {
  MutexLock lock(&mutex_);
  return directory_;
}

absl::Status Store::Add(const pb::RoutingProto& routing, uint32_t index, const Admit& admit,
                        StoreDirectory* directory) {
  uint64_t bytes = 0;
  for (const pb::VariableProto& proto : routing.variables()) {
    MU_ASSIGN_OR_RETURN(const bool here,
                        IsHere(directory->variable(proto.id()), "variable", proto));
    if (here) continue;
    MU_RETURN_IF_ERROR(CheckPlacedVariable(proto));
    bytes += BytesOn(index, proto);
  }
  // What contradicts may be replaced: that comes before what has no room.
  for (const pb::TableProto& proto : routing.tables())
    MU_RETURN_IF_ERROR(IsHere(directory->table(proto.id()), "table", proto).status());
  if (bytes > 0 && admit != nullptr) MU_RETURN_IF_ERROR(admit(UsageOf(*directory).memory + bytes));
  for (const pb::VariableProto& proto : routing.variables()) {
    MU_ASSIGN_OR_RETURN(const bool here,
                        IsHere(directory->variable(proto.id()), "variable", proto));
    if (here) continue;
    MU_ASSIGN_OR_RETURN(directory->variables[proto.id()], MakeVariable(proto, index));
  }
  for (const pb::TableProto& proto : routing.tables()) {
    MU_ASSIGN_OR_RETURN(const bool here, IsHere(directory->table(proto.id()), "table", proto));
    if (here) continue;
    MU_ASSIGN_OR_RETURN(directory->tables[proto.id()], MakeTable(proto, index));
  }
  return absl::OkStatus();
}

absl::StatusOr<DefinitionsChange> Store::Configure(const pb::RoutingProto& routing, uint32_t index,
                                                   bool replace, const Admit& admit) {
  MutexLock configuring(&configure_mutex_);
  const auto before = directory();
  if (!(before->variables.empty() && before->tables.empty()) && index != index_) {
    return absl::FailedPreconditionError(
        absl::StrCat("this is server ", index_, " of its job and cannot become server ", index));
  }
  auto next = std::make_shared<StoreDirectory>(*before);
  absl::Status added = Add(routing, index, admit, next.get());
  const bool anew = replace && absl::IsFailedPrecondition(added);
  if (anew) {
    next = std::make_shared<StoreDirectory>();
    added = Add(routing, index, admit, next.get());
  }
  MU_RETURN_IF_ERROR(added);
  const bool same = next->variables == before->variables && next->tables == before->tables;
  index_ = index;
  MutexLock lock(&mutex_);
  directory_ = std::move(next);
  if (anew) return DefinitionsChange::kReplaced;
  return same ? DefinitionsChange::kNone : DefinitionsChange::kAdded;
}

absl::Status Store::Reset() {
  MutexLock configuring(&configure_mutex_);
  const auto before = directory();
  auto next = std::make_shared<StoreDirectory>();
  for (const auto& [id, variable] : before->variables) {
    MU_ASSIGN_OR_RETURN(next->variables[id], MakeVariable(variable->definition->proto, index_));
  }
  for (const auto& [id, table] : before->tables) {
    MU_ASSIGN_OR_RETURN(next->tables[id], MakeTable(table->definition->proto, index_));
  }
  MutexLock lock(&mutex_);
  directory_ = std::move(next);
  return absl::OkStatus();
}

StoreUsage UsageOf(const StoreDirectory& directory) {
  StoreUsage usage;
  for (const auto& [id, variable] : directory.variables) {
    for (const auto& partition : variable->partitions) {
      if (partition != nullptr) usage.bytes += partition->bytes();
    }
  }
  usage.memory = usage.bytes;
  for (const auto& [id, table] : directory.tables) {
    for (const auto& partition : table->partitions) {
      if (partition == nullptr) continue;
      const TablePartition::Usage used = partition->usage();
      usage.bytes += used.bytes;
      usage.memory += used.memory;
      usage.rows += used.rows;
    }
  }
  return usage;
}

uint64_t VariableBytes(const StoreDirectory& directory) {
  uint64_t bytes = 0;
  for (const auto& [id, variable] : directory.variables) {
    for (const auto& partition : variable->partitions) {
      if (partition != nullptr) bytes += partition->value_bytes();
    }
  }
  return bytes;
}

}  // namespace mu
