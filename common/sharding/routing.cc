#include "common/sharding/routing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {
namespace {

absl::Status Bad(const std::string& what, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("routing: ", what, " ", problem));
}

}  // namespace

absl::StatusOr<uint32_t> Routing::ServerPosition(uint32_t index, const std::string& what) const {
  const auto it = position_of_server_.find(index);
  if (it == position_of_server_.end())
    return Bad(what, absl::StrCat("is placed on unknown server ", index));
  return it->second;
}

absl::Status Routing::AddVariable(const pb::VariableProto& proto) {
  MU_RETURN_IF_ERROR(CheckVariable(proto));
  const std::string what = "variable '" + proto.name() + "'";
  if (proto.placement_size() != proto.partition_starts_size()) {
    return Bad(what, "does not have one server for each partition");
  }
  auto route = std::make_unique<VariableRoute>();
  route->proto = proto;
  route->layout = LayoutOf(proto);
  route->bytes = static_cast<size_t>(route->layout.rows * route->layout.bytes_per_row);
  for (int p = 0; p < proto.partition_starts_size(); ++p) {
    const int64_t end =
        p + 1 < proto.partition_starts_size() ? proto.partition_starts(p + 1) : route->layout.rows;
    route->offsets.push_back(
        static_cast<size_t>(proto.partition_starts(p) * route->layout.bytes_per_row));
    route->sizes.push_back(
        static_cast<size_t>((end - proto.partition_starts(p)) * route->layout.bytes_per_row));
    MU_ASSIGN_OR_RETURN(const uint32_t server, ServerPosition(proto.placement(p), what));
    route->servers.push_back(server);
  }
  if (!variable_names_.emplace(proto.name(), route.get()).second ||
      !variables_.emplace(proto.id(), std::move(route)).second) {
    return Bad(what, "is there twice");
  }
  return absl::OkStatus();
}

absl::Status Routing::AddTable(const pb::TableProto& proto) {
  MU_RETURN_IF_ERROR(CheckTable(proto));
  const std::string what = "table '" + proto.name() + "'";
  if (static_cast<uint32_t>(proto.placement_size()) != proto.partitions()) {
    return Bad(what, "does not have one server for each partition");
  }
  auto route = std::make_unique<TableRoute>();
  route->proto = proto;
  route->partition_of = FastMod(proto.partitions());
  route->server_begin.assign(servers_.size() + 1, 0);
  for (uint32_t p = 0; p < proto.partitions(); ++p) {
    MU_ASSIGN_OR_RETURN(const uint32_t server, ServerPosition(proto.placement(p), what));
    route->servers.push_back(server);
    route->order.push_back(p);
    ++route->server_begin[server + 1];
  }
  for (size_t s = 0; s < servers_.size(); ++s) route->server_begin[s + 1] += route->server_begin[s];
  std::stable_sort(route->order.begin(), route->order.end(),
                   [&](uint32_t a, uint32_t b) { return route->servers[a] < route->servers[b]; });
  if (!table_names_.emplace(proto.name(), route.get()).second ||
      !tables_.emplace(proto.id(), std::move(route)).second) {
    return Bad(what, "is there twice");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Routing>> Routing::Create(const pb::RoutingProto& proto) {
  auto routing = std::make_shared<Routing>();
  routing->proto_ = proto;
  routing->servers_.assign(proto.servers().begin(), proto.servers().end());
  std::sort(
      routing->servers_.begin(), routing->servers_.end(),
      [](const pb::ServerProto& a, const pb::ServerProto& b) { return a.index() < b.index(); });
  for (uint32_t s = 0; s < routing->servers_.size(); ++s) {
    if (!routing->position_of_server_.emplace(routing->servers_[s].index(), s).second) {
      return Bad(absl::StrCat("server ", routing->servers_[s].index()), "is there twice");
    }
  }
  for (const pb::VariableProto& variable : proto.variables())
    MU_RETURN_IF_ERROR(routing->AddVariable(variable));
  for (const pb::TableProto& table : proto.tables()) MU_RETURN_IF_ERROR(routing->AddTable(table));
  return std::shared_ptr<const Routing>(std::move(routing));
}

namespace {

template <typename Map, typename Key>
auto FindPointer(const Map& map, const Key& key) -> decltype(&*map.begin()->second) {
  const auto it = map.find(key);
  return it == map.end() ? nullptr : &*it->second;
}

}  // namespace

const VariableRoute* Routing::variable(uint32_t id) const { return FindPointer(variables_, id); }
const VariableRoute* Routing::variable(absl::string_view name) const {
  return FindPointer(variable_names_, name);
}
const TableRoute* Routing::table(uint32_t id) const { return FindPointer(tables_, id); }
const TableRoute* Routing::table(absl::string_view name) const {
  return FindPointer(table_names_, name);
}

}  // namespace mu
