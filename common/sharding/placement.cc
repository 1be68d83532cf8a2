#include "common/sharding/placement.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/optimizer/optimizer_settings.h"
#include "common/sharding/partition.h"

namespace mu {
namespace {

// What is balanced, by server index and in the order of the indices.
using Loads = std::map<uint32_t, double>;

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

// Fills what follows from the shapes alone, and checks what is placed already.
absl::Status Complete(pb::RoutingProto* routing) {
  for (pb::VariableProto& variable : *routing->mutable_variables()) {
    if (variable.partition_starts().empty()) {
      for (int64_t start : PartitionStarts(variable)) variable.add_partition_starts(start);
    }
    if (!variable.placement().empty() &&
        variable.placement_size() != variable.partition_starts_size())
      return BadPlacement("variable '" + variable.name() + "'");
  }
  for (pb::TableProto& table : *routing->mutable_tables()) {
    if (table.partitions() == 0)
      table.set_partitions(DefaultTablePartitions(static_cast<uint32_t>(routing->servers_size())));
    if (!table.placement().empty() &&
        static_cast<uint32_t>(table.placement_size()) != table.partitions())
      return BadPlacement("table '" + table.name() + "'");
  }
  return absl::OkStatus();
}

double Sum(const std::vector<uint64_t>& bytes) {
  double sum = 0;
  for (const uint64_t b : bytes) sum += static_cast<double>(b);
  return sum;
}

class Placer {
 public:
  Placer(pb::RoutingProto* routing, const Placement& placement)
      : routing_(*routing), placement_(placement) {
    for (const pb::ServerProto& server : routing->servers()) {
      loads_[server.index()] = 0;
      bytes_[server.index()] = 0;
    }
    if (const auto* by_load = std::get_if<PlaceByLoad>(&placement_)) FindLoadOfBytes(*by_load);
  }

  absl::Status Run() {
    for (pb::VariableProto& variable : *routing_.mutable_variables()) Note(variable);
    for (pb::TableProto& table : *routing_.mutable_tables()) Note(table);
    for (pb::VariableProto& variable : *routing_.mutable_variables())
      MU_RETURN_IF_ERROR(Place(&variable, /*is_table=*/false));
    for (pb::TableProto& table : *routing_.mutable_tables())
      MU_RETURN_IF_ERROR(Place(&table, /*is_table=*/true));
    return absl::OkStatus();
  }

 private:
  // Of what has a number, the average; each parameter counts at least a hundredth of that for each
  // of its bytes, so that what nobody used yet is spread by its memory.
  void FindLoadOfBytes(const PlaceByLoad& by_load) {
    double bytes = 0, load = 0;
    const auto add = [&](const auto& parameter) {
      const auto it = by_load.load.find(parameter.name());
      if (it == by_load.load.end()) return;
      load += it->second;
      bytes += Sum(PartitionBytes(parameter));
    };
    for (const pb::VariableProto& variable : routing_.variables()) add(variable);
    for (const pb::TableProto& table : routing_.tables()) add(table);
    if (load > 0 && bytes > 0) load_of_byte_ = load / bytes;
  }

  // What each partition adds to its server.
  std::vector<double> Weights(const std::string& name, const std::vector<uint64_t>& bytes) const {
    double of_byte = load_of_byte_;
    if (const auto* by_load = std::get_if<PlaceByLoad>(&placement_)) {
      const auto it = by_load->load.find(name);
      const double sum = Sum(bytes);
      if (it != by_load->load.end() && sum > 0)
        of_byte = std::max(it->second / sum, kLeastShare * load_of_byte_);
    }
    std::vector<double> weights;
    for (const uint64_t b : bytes) weights.push_back(static_cast<double>(b) * of_byte);
    return weights;
  }

  void Add(uint32_t server, uint64_t bytes, double weight) {
    bytes_[server] += bytes;
    loads_[server] += weight;
    ++placed_;
  }

  template <typename Parameter>
  void Note(const Parameter& parameter) {
    if (parameter.placement().empty()) return;
    const std::vector<uint64_t> bytes = PartitionBytes(parameter);
    const std::vector<double> weights = Weights(parameter.name(), bytes);
    for (size_t p = 0; p < bytes.size(); ++p)
      Add(parameter.placement(static_cast<int>(p)), bytes[p], weights[p]);
  }

  template <typename Parameter>
  absl::Status Place(Parameter* parameter, bool is_table) {
    if (!parameter->placement().empty()) return absl::OkStatus();
    const std::vector<uint64_t> bytes = PartitionBytes(*parameter);
    const std::vector<double> weights = Weights(parameter->name(), bytes);
    auto next = loads_.find(Lightest(loads_));  // of a table
    for (size_t p = 0; p < bytes.size(); ++p) {
      uint32_t server = 0;
      if (const auto* function = std::get_if<PlacementFunction>(&placement_)) {
        MU_ASSIGN_OR_RETURN(server, Ask(*function, parameter->name(), is_table, p, bytes));
      } else if (std::holds_alternative<PlaceRoundRobin>(placement_)) {
        server = std::next(loads_.begin(), static_cast<int64_t>(placed_ % loads_.size()))->first;
      } else if (is_table) {
        server = next->first;
        if (++next == loads_.end()) next = loads_.begin();
      } else {
        server = Lightest(loads_);
      }
      parameter->add_placement(server);
      Add(server, bytes[p], weights[p]);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> Ask(const PlacementFunction& function, const std::string& name,
                               bool is_table, size_t partition,
                               const std::vector<uint64_t>& bytes) const {
    if (function == nullptr)
      return absl::InvalidArgumentError("the function that places partitions is empty");
    PlacementRequest request;
    request.name = name;
    request.is_table = is_table;
    request.partition = static_cast<uint32_t>(partition);
    request.partitions = static_cast<uint32_t>(bytes.size());
    request.bytes = bytes[partition];
    for (const auto& [index, held] : bytes_) request.servers.push_back({index, held});
    const uint32_t server = function(request);
    if (bytes_.count(server) > 0) return server;
    return absl::InvalidArgumentError(
        absl::StrCat("the function that places partitions chose server ", server, " for partition ",
                     partition, " of '", name, "'; there are ", bytes_.size(),
                     " servers, numbered from ", bytes_.begin()->first));
  }

  static constexpr double kLeastShare = 0.01;

  pb::RoutingProto& routing_;
  const Placement& placement_;
  Loads loads_;
  std::map<uint32_t, uint64_t> bytes_;
  double load_of_byte_ = 1;  // where nothing is known
  uint64_t placed_ = 0;      // partitions
};

absl::Status CheckLoads(const Placement& placement) {
  const auto* by_load = std::get_if<PlaceByLoad>(&placement);
  if (by_load == nullptr) return absl::OkStatus();
  for (const auto& [name, load] : by_load->load) {
    if (std::isfinite(load) && load >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("the load of '", name,
                                                   "', by which it is to be placed, is ", load,
                                                   "; loads are finite and not negative"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PlaceAll(pb::RoutingProto* routing, const Placement& placement) {
  if (routing->servers().empty())
    return absl::FailedPreconditionError("there is no parameter server to place variables on");
  MU_RETURN_IF_ERROR(CheckLoads(placement));
  MU_RETURN_IF_ERROR(Complete(routing));
  return Placer(routing, placement).Run();
}

}  // namespace mu
