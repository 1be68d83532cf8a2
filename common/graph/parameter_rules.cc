#include "common/graph/parameter_rules.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/op_table.h"

namespace mu {
namespace {

std::string TypeAndShape(const pb::NodeProto& node) {
  return TensorSpec{node.attrs().at("dtype").dtype(), Shape(node.attrs().at("shape").shape())}
      .ToString();
}

absl::Status CheckId(const pb::NodeProto& node) {
  const int64_t id = node.attrs().at("id").i();
  if (id >= 0 && id <= std::numeric_limits<uint32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("attribute \"id\" is ", id, ", which no parameter has"));
}

}  // namespace

absl::Status ParameterRules::Agree(const std::string& key, const std::string& said) {
  const auto [known, added] = said_.emplace(key, said);
  if (added || known->second == said) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("says that ", key, " is ", said,
                                                 ", an earlier node that it is ", known->second));
}

absl::Status ParameterRules::CheckLowered(const pb::FunctionProto& function, const OpDef& def,
                                          const pb::NodeProto& node) {
  const bool rows = def.parameter == OpParameter::kTable;
  if (rows) {
    const pb::NodeInput& ids = node.inputs(0);
    const std::string& maker = function.nodes(ids.node()).op();
    const bool distinct = maker == "unique" || (maker == "accumulate_rows" && def.has_effect());
    if (!distinct || ids.output() != 0) {
      return absl::InvalidArgumentError(
          "needs the distinct ids that \"unique\" makes, its output 0");
    }
  }
  // Reads of a variable may be as many as one likes: they are of one pull.
  if ((rows || def.has_effect()) &&
      !once_.insert(absl::StrCat(def.name, " ", node.attrs().at("id").i())).second) {
    return absl::InvalidArgumentError(
        "is there twice for one parameter; a step pulls and pushes each of them once");
  }
  return absl::OkStatus();
}

absl::Status ParameterRules::Check(const pb::FunctionProto& function, const pb::NodeProto& node) {
  const OpDef& def = DefOf(node);
  const auto& attrs = node.attrs();
  if (def.source == OpSource::kColumn) {
    MU_RETURN_IF_ERROR(
        Agree(absl::StrCat("column \"", attrs.at("column").s(), "\""), TypeAndShape(node)));
  }
  if (def.parameter != OpParameter::kNone) MU_RETURN_IF_ERROR(CheckId(node));
  if (def.parameter == OpParameter::kVariable) {
    MU_RETURN_IF_ERROR(
        Agree(absl::StrCat("variable ", attrs.at("id").i()),
              absl::StrCat("\"", attrs.at("variable").s(), "\", ", TypeAndShape(node))));
  }
  if (def.parameter == OpParameter::kTable) {
    MU_RETURN_IF_ERROR(Agree(absl::StrCat("table ", attrs.at("id").i()),
                             absl::StrCat("\"", attrs.at("table").s(), "\", ", attrs.at("rows").i(),
                                          " rows of ", attrs.at("dim").i())));
  }
  return stage_ == GraphStage::kLowered ? CheckLowered(function, def, node) : absl::OkStatus();
}

}  // namespace mu
