#include "coordinator/cluster/catalog.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/worker.pb.h"

namespace mu {
namespace {

absl::Status CheckNameIsFree(const pb::RoutingProto& routing, const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("a variable or table needs a name");
  for (const auto& variable : routing.variables()) {
    if (variable.name() == name) {
      return absl::AlreadyExistsError(
          absl::StrCat("there is a variable '", name, "' already; choose another name"));
    }
  }
  for (const auto& table : routing.tables()) {
    if (table.name() == name) {
      return absl::AlreadyExistsError(
          absl::StrCat("there is a table '", name, "' already; choose another name"));
    }
  }
  return absl::OkStatus();
}

// What was placed keeps its places.
pb::RoutingProto WithUnplaced(const pb::RoutingProto* routed, const pb::RoutingProto& created) {
  pb::RoutingProto routing;
  if (routed != nullptr) routing = *routed;
  for (int i = routing.variables_size(); i < created.variables_size(); ++i)
    *routing.add_variables() = created.variables(i);
  for (int i = routing.tables_size(); i < created.tables_size(); ++i)
    *routing.add_tables() = created.tables(i);
  return routing;
}

// Whether a function of the user's finds places for what was created, once the servers are known.
// What has no place stays in the job for good and would keep it from checkpoints and from recovery.
absl::Status CheckPlaces(const Placement& placement, const pb::RoutingProto* routed,
                         const pb::RoutingProto& created) {
  if (routed == nullptr || !std::holds_alternative<PlacementFunction>(placement))
    return absl::OkStatus();
  pb::RoutingProto trial = WithUnplaced(routed, created);
  return PlaceAll(&trial, placement);
}

}  // namespace

absl::StatusOr<pb::VariableProto> Catalog::AddVariable(pb::VariableProto variable) {
  MU_RETURN_IF_ERROR(CheckNameIsFree(created_, variable.name()));
  variable.set_id(static_cast<uint32_t>(created_.variables_size()));
  *created_.add_variables() = variable;
  if (absl::Status placed = CheckPlaces(placement_, routed_.get(), created_); !placed.ok()) {
    created_.mutable_variables()->RemoveLast();
    return placed;
  }
  return variable;
}

absl::StatusOr<pb::TableProto> Catalog::AddTable(pb::TableProto table) {
  MU_RETURN_IF_ERROR(CheckNameIsFree(created_, table.name()));
  table.set_id(static_cast<uint32_t>(created_.tables_size()));
  *created_.add_tables() = table;
  if (absl::Status placed = CheckPlaces(placement_, routed_.get(), created_); !placed.ok()) {
    created_.mutable_tables()->RemoveLast();
    return placed;
  }
  return table;
}

absl::StatusOr<std::shared_ptr<const pb::RoutingProto>> Catalog::Route(
    CoordinatorEpoch epoch, Generation generation, const std::vector<Member>& servers) {
  auto routing = std::make_shared<pb::RoutingProto>(WithUnplaced(routed_.get(), created_));
  // Whatever older coordinators gave out is smaller.
  routing->set_version(std::max(routing->version(), (epoch.value() - 1) << 32) + 1);
  routing->set_generation(generation.value());
  routing->clear_servers();
  for (const Member& server : servers) {
    if (server.role != pb::ROLE_PSSERVER) continue;
    pb::ServerProto& proto = *routing->add_servers();
    proto.set_index(server.index);
    proto.set_address(server.address);
    proto.set_incarnation(server.incarnation.value());
  }
  MU_RETURN_IF_ERROR(PlaceAll(routing.get(), placement_));
  return routed_ = std::move(routing);
}

void Catalog::UseRouting() {
  routing_ = *routed_;
  pb::ConfigureWorkerRequest request;
  *request.mutable_routing() = routing_;
  Change({InstallPart::Kind::kRouting}, "/muster.Worker/Configure", request);
  routing_version_ = version_;
}

pb::DatasetProto Catalog::AddDataset(pb::DatasetProto dataset) {
  dataset.set_id(++last_dataset_);
  return dataset;  // installed once its files are known
}

void Catalog::UpdateDataset(const pb::DatasetProto& dataset) {
  pb::InstallDatasetRequest request;
  *request.mutable_dataset() = dataset;
  Change({InstallPart::Kind::kDataset, dataset.id()}, "/muster.Worker/InstallDataset", request);
}

const InstalledFunction& Catalog::AddFunction(Fingerprint fingerprint, pb::FunctionProto function) {
  const auto [it, added] = functions_.try_emplace(fingerprint);
  if (!added) return it->second;
  pb::InstallFunctionRequest request;
  *request.mutable_function() = function;
  request.set_fingerprint(fingerprint.value());
  Change({InstallPart::Kind::kFunction, fingerprint.value()}, "/muster.Worker/InstallFunction",
         request);
  it->second = {fingerprint, std::move(function)};
  return it->second;
}

const InstalledFunction* Catalog::FindFunction(Fingerprint fingerprint) const {
  const auto it = functions_.find(fingerprint);
  return it == functions_.end() ? nullptr : &it->second;
}

void Catalog::Change(const InstallPart& part, const char* method,
                     const google::protobuf::Message& request) {
  ++version_;
  requests_[part] = {method, std::make_shared<const std::string>(request.SerializeAsString())};
  changed_.push_back(part);
}

}  // namespace mu
