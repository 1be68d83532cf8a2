#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/exec/compiled_function.h"
#include "common/graph/op_table.h"
#include "common/graph/verifier.h"

namespace mu {
namespace {

absl::Status CheckVariable(const AttrReader& attrs, const pb::VariableProto* variable,
                           uint64_t version) {
  const std::string& name = attrs.String("variable");
  if (variable == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("variable \"", name, "\" (id ", attrs.Int("id"),
                                                   ") does not exist in version ", version,
                                                   " of the routing"));
  }
  const TensorSpec said{attrs.Type("dtype"), attrs.GetShape("shape")};
  const TensorSpec is{variable->dtype(), Shape(variable->shape())};
  if (variable->name() == name && said == is) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("takes variable ", attrs.Int("id"), " for \"",
                                                 name, "\", ", said.ToString(), ", but it is \"",
                                                 variable->name(), "\", ", is.ToString()));
}

absl::Status CheckTable(const AttrReader& attrs, const pb::TableProto* table, uint64_t version) {
  const std::string& name = attrs.String("table");
  if (table == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("table \"", name, "\" (id ", attrs.Int("id"),
                                                   ") does not exist in version ", version,
                                                   " of the routing"));
  }
  if (table->name() == name && table->dim() == attrs.Int("dim") &&
      table->rows() == static_cast<uint64_t>(attrs.Int("rows"))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("takes table ", attrs.Int("id"), " for \"", name,
                                                 "\", ", attrs.Int("rows"), " rows of ",
                                                 attrs.Int("dim"), ", but it is \"", table->name(),
                                                 "\", ", table->rows(), " rows of ", table->dim()));
}

template <typename Map>
typename Map::mapped_type FindOrNull(const Map& map, int64_t id) {
  const auto found = map.find(id);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

absl::Status CheckAgainstRouting(const pb::FunctionProto& function,
                                 const pb::RoutingProto& routing) {
  absl::flat_hash_map<int64_t, const pb::VariableProto*> variables;
  absl::flat_hash_map<int64_t, const pb::TableProto*> tables;
  for (const pb::VariableProto& variable : routing.variables())
    variables[variable.id()] = &variable;
  for (const pb::TableProto& table : routing.tables()) tables[table.id()] = &table;
  for (int i = 0; i < function.nodes_size(); ++i) {
    const pb::NodeProto& node = function.nodes(i);
    const OpDef& def = DefOf(node);
    const AttrReader attrs = def.Read(node.attrs());
    absl::Status valid;
    if (def.parameter == OpParameter::kVariable) {
      valid = CheckVariable(attrs, FindOrNull(variables, attrs.Int("id")), routing.version());
    } else if (def.parameter == OpParameter::kTable) {
      valid = CheckTable(attrs, FindOrNull(tables, attrs.Int("id")), routing.version());
    }
    MU_RETURN_IF_ERROR(NodeError(function, i, valid));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const CompiledFunction>> CompileWithOptions(
    const pb::FunctionProto& function, const pb::RoutingProto& routing,
    const PlanOptions& options) {
  if (function.micro_batches() <= 1) {
    MU_ASSIGN_OR_RETURN(Plan plan, MakePlan(function, options));
    MU_RETURN_IF_ERROR(CheckAgainstRouting(function, routing));
    return std::make_shared<const CompiledFunction>(std::move(plan));
  }
  PlanOptions part = options;
  part.part = PlanPart::kSlice;
  MU_ASSIGN_OR_RETURN(Plan slice, MakePlan(function, part));
  part.part = PlanPart::kFinish;
  MU_ASSIGN_OR_RETURN(Plan finish, MakePlan(function, part));
  MU_RETURN_IF_ERROR(CheckAgainstRouting(function, routing));
  return std::make_shared<const CompiledFunction>(std::move(finish), std::move(slice));
}

absl::StatusOr<std::shared_ptr<const CompiledFunction>> Compile(const pb::FunctionProto& function,
                                                                const pb::RoutingProto& routing) {
  return CompileWithOptions(function, routing, PlanOptions());
}

}  // namespace mu
