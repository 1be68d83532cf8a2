#include "common/sharding/placement.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/optimizer/optimizer_settings.h"
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

// Of each partition, with its slots.
std::vector<uint64_t> PartitionBytes(const pb::VariableProto& variable) {
  const RowLayout layout = LayoutOf(variable);
  const uint64_t elements = static_cast<uint64_t>(layout.elements_per_row);
  const uint64_t row_bytes = static_cast<uint64_t>(layout.bytes_per_row) +
                             SlotFloats(SlotsOf(variable.optimizer(), elements)) * sizeof(float);
  std::vector<uint64_t> bytes;
  for (int p = 0; p < variable.partition_starts_size(); ++p) {
    const int64_t end =
        p + 1 < variable.partition_starts_size() ? variable.partition_starts(p + 1) : layout.rows;
    bytes.push_back(static_cast<uint64_t>(end - variable.partition_starts(p)) * row_bytes);
  }
  return bytes;
}

std::vector<uint64_t> PartitionBytes(const pb::TableProto& table) {
  const uint64_t row_floats = table.dim() + SlotFloats(SlotsOf(table.optimizer(), table.dim()));
  std::vector<uint64_t> bytes;
  for (uint32_t p = 0; p < table.partitions(); ++p) {
    bytes.push_back(TablePartitionRows(table.rows(), table.partitions(), p) * row_floats *
                    sizeof(float));
  }
  return bytes;
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
    const std::vector<uint64_t> bytes = PartitionBytes(variable);
    for (int p = 0; p < variable.placement_size(); ++p) loads[variable.placement(p)] += bytes[p];
  }
  for (pb::TableProto& table : *routing->mutable_tables()) {
    if (table.partitions() == 0)
      table.set_partitions(DefaultTablePartitions(static_cast<uint32_t>(loads.size())));
    if (table.placement().empty()) continue;
    if (static_cast<uint32_t>(table.placement_size()) != table.partitions()) {
      return BadPlacement("table '" + table.name() + "'");
    }
    const std::vector<uint64_t> bytes = PartitionBytes(table);
    for (uint32_t p = 0; p < table.partitions(); ++p) loads[table.placement(p)] += bytes[p];
  }

  for (pb::VariableProto& variable : *routing->mutable_variables()) {
    if (!variable.placement().empty()) continue;
    for (const uint64_t bytes : PartitionBytes(variable)) {
      const uint32_t server = Lightest(loads);
      variable.add_placement(server);
      loads[server] += bytes;
    }
  }
  for (pb::TableProto& table : *routing->mutable_tables()) {
    if (!table.placement().empty()) continue;
    auto next = loads.find(Lightest(loads));
    for (const uint64_t bytes : PartitionBytes(table)) {
      table.add_placement(next->first);
      next->second += bytes;
      if (++next == loads.end()) next = loads.begin();
    }
  }
  return absl::OkStatus();
}

}  // namespace mu
