#include "coordinator/cluster/parameter_info.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"

namespace mu {
namespace {

using Key = std::pair<bool, std::pair<uint32_t, uint32_t>>;  // is a table, id, partition

ParameterLoad StatsOf(const pb::PartitionStats& stats) {
  return {stats.bytes(),      stats.rows(),    stats.reads(),
          stats.read_bytes(), stats.updates(), stats.update_bytes()};
}

std::string Megabytes(uint64_t bytes) {
  return absl::StrFormat("%.2f", static_cast<double>(bytes) / 1e6);
}

std::string Line(const std::string& name, const std::string& shape, const std::string& partitions,
                 const std::string& servers, const ParameterLoad& load) {
  return absl::StrFormat("%-32s %-20s %10s %8s %12s %10d %12s %10d %12s\n", name, shape, partitions,
                         servers, Megabytes(load.bytes), load.reads, Megabytes(load.read_bytes),
                         load.updates, Megabytes(load.update_bytes));
}

}  // namespace

void ParameterLoad::Add(const ParameterLoad& other) {
  bytes += other.bytes;
  rows += other.rows;
  reads += other.reads;
  read_bytes += other.read_bytes;
  updates += other.updates;
  update_bytes += other.update_bytes;
}

ParameterLoad ParameterInfo::Total() const {
  ParameterLoad total;
  for (const PartitionInfo& partition : partitions) total.Add(partition.load);
  return total;
}

std::vector<ParameterInfo> ParameterInfosOf(const pb::RoutingProto& routing,
                                            const std::vector<pb::PsStatsReply>& stats) {
  std::map<Key, ParameterLoad> loads;
  for (const pb::PsStatsReply& reply : stats) {
    for (const pb::PartitionStats& partition : reply.partitions())
      loads[{partition.table(), {partition.id(), partition.partition()}}] = StatsOf(partition);
  }
  std::vector<ParameterInfo> infos;
  for (const pb::VariableProto& variable : routing.variables()) {
    ParameterInfo& info = infos.emplace_back();
    info.name = variable.name();
    info.dtype = variable.dtype();
    info.shape = Shape(variable.shape());
    info.trainable = variable.trainable();
    for (int p = 0; p < variable.placement_size(); ++p) {
      info.partitions.push_back({variable.placement(p), variable.partition_starts(p),
                                 loads[{false, {variable.id(), static_cast<uint32_t>(p)}}]});
    }
  }
  for (const pb::TableProto& table : routing.tables()) {
    ParameterInfo& info = infos.emplace_back();
    info.name = table.name();
    info.is_table = true;
    info.shape = Shape({static_cast<int64_t>(table.rows()), static_cast<int64_t>(table.dim())});
    info.trainable = table.has_optimizer();
    for (int p = 0; p < table.placement_size(); ++p) {
      info.partitions.push_back(
          {table.placement(p), 0, loads[{true, {table.id(), static_cast<uint32_t>(p)}}]});
    }
  }
  return infos;
}

std::map<std::string, double> LoadOf(const std::vector<ParameterInfo>& parameters) {
  std::map<std::string, double> loads;
  for (const ParameterInfo& parameter : parameters) {
    const ParameterLoad total = parameter.Total();
    loads[parameter.name] = static_cast<double>(total.read_bytes + total.update_bytes);
  }
  return loads;
}

std::map<uint32_t, ParameterLoad> LoadByServer(const std::vector<ParameterInfo>& parameters) {
  std::map<uint32_t, ParameterLoad> loads;
  for (const ParameterInfo& parameter : parameters) {
    for (const PartitionInfo& partition : parameter.partitions)
      loads[partition.server].Add(partition.load);
  }
  return loads;
}

std::string ParametersTable(const std::vector<ParameterInfo>& parameters) {
  std::string text = absl::StrFormat("%-32s %-20s %10s %8s %12s %10s %12s %10s %12s\n",
                                     "variable or table", "shape", "partitions", "servers", "MB",
                                     "reads", "MB read", "updates", "MB updated");
  for (const ParameterInfo& parameter : parameters) {
    std::set<uint32_t> servers;
    for (const PartitionInfo& partition : parameter.partitions) servers.insert(partition.server);
    text +=
        Line(parameter.name, parameter.shape.ToString(), absl::StrCat(parameter.partitions.size()),
             absl::StrCat(servers.size()), parameter.Total());
  }
  for (const auto& [server, load] : LoadByServer(parameters))
    text += Line(absl::StrCat("server ", server), "", "", "", load);
  return text;
}

}  // namespace mu
