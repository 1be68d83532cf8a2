#include "common/sharding/placement.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/sharding/partition.h"

namespace mu {
namespace {

// Bytes by server index, in the order of the indices.
using Loads = std::map<uint32_t, uint64_t>;

uint32_t Lightest(const Loads& loads) {
  return std::min_element(loads.begin(), loads.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

uint64_t VariablePartitionBytes(const pb::VariableProto& variable, int partition) {
  const RowLayout layout = LayoutOf(variable);
  const int64_t begin = variable.partition_starts(partition);
  const int64_t end = partition + 1 < variable.partition_starts_size()
                          ? variable.partition_starts(partition + 1)
                          : layout.rows;
  return static_cast<uint64_t>((end - begin) * layout.bytes_per_row) *
         (1 + SlotCount(variable.optimizer()));
}

uint64_t TablePartitionBytes(const pb::TableProto& table, uint32_t partition) {
  return TablePartitionRows(table.rows(), table.partitions(), partition) * table.dim() *
         sizeof(float) * (1 + SlotCount(table.optimizer()));
}

absl::Status BadPlacement(const std::string& name) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the placement of ", name, " does not have one server for each of its partitions"));
}

}  // namespace

absl::Status PlaceAll(pb::RoutingProto* routing) {
  Loads loads;
  for (const pb::ServerProto& server : routing->servers()) loads[server.index()] = 0;
  if (loads.empty())
    return absl::FailedPreconditionError("there is no parameter server to place variables on");

  for (pb::VariableProto& variable : *routing->mutable_variables()) {
    if (variable.partition_starts().empty()) {
      for (int64_t start : PartitionStarts(variable)) variable.add_partition_starts(start);
    }
    if (variable.placement().empty()) continue;
    if (variable.placement_size() != variable.partition_starts_size()) {
      return BadPlacement("variable '" + variable.name() + "'");
    }
    for (int p = 0; p < variable.placement_size(); ++p) {
      loads[variable.placement(p)] += VariablePartitionBytes(variable, p);
    }
  }
  for (pb::TableProto& table : *routing->mutable_tables()) {
    if (table.partitions() == 0)
      table.set_partitions(DefaultTablePartitions(static_cast<uint32_t>(loads.size())));
    if (table.placement().empty()) continue;
    if (static_cast<uint32_t>(table.placement_size()) != table.partitions()) {
      return BadPlacement("table '" + table.name() + "'");
    }
    for (uint32_t p = 0; p < table.partitions(); ++p)
      loads[table.placement(p)] += TablePartitionBytes(table, p);
  }

  for (pb::VariableProto& variable : *routing->mutable_variables()) {
    if (!variable.placement().empty()) continue;
    for (int p = 0; p < variable.partition_starts_size(); ++p) {
      const uint32_t server = Lightest(loads);
      variable.add_placement(server);
      loads[server] += VariablePartitionBytes(variable, p);
    }
  }
  for (pb::TableProto& table : *routing->mutable_tables()) {
    if (!table.placement().empty()) continue;
    auto next = loads.find(Lightest(loads));
    for (uint32_t p = 0; p < table.partitions(); ++p) {
      table.add_placement(next->first);
      next->second += TablePartitionBytes(table, p);
      if (++next == loads.end()) next = loads.begin();
    }
  }
  return absl::OkStatus();
}

}  // namespace mu
