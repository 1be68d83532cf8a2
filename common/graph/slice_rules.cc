#include "common/graph/slice_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/op_table.h"
#include "common/graph/verifier.h"

namespace mu {
namespace {

// Whether its value is another in each slice, whatever its inputs are.
bool VariesBySlice(const OpDef& def) {
  const bool rows = def.reads_parameter() && def.parameter == OpParameter::kTable;
  return def.source == OpSource::kColumn || rows || def.random;
}

bool HasInputOf(const pb::NodeProto& node, const std::vector<StepPart>& parts, StepPart part) {
  return std::any_of(node.inputs().begin(), node.inputs().end(),
                     [&](const pb::NodeInput& input) { return parts[input.node()] == part; });
}

absl::Status CheckNode(const pb::NodeProto& node, const std::vector<StepPart>& parts,
                       StepPart part) {
  const OpDef& def = DefOf(node);
  const bool of_finish = HasInputOf(node, parts, StepPart::kFinish);
  if (def.source == OpSource::kSlices) {
    return of_finish ? absl::InvalidArgumentError("accumulates what is accumulated already")
                     : absl::OkStatus();
  }
  if (of_finish && (VariesBySlice(def) || HasInputOf(node, parts, StepPart::kSlice))) {
    return absl::InvalidArgumentError(
        "depends on one slice of the batch and on what is accumulated over all of them");
  }
  if (def.has_effect() && part == StepPart::kSlice) {
    return absl::InvalidArgumentError(
        "changes a parameter by what one slice of the batch gives; the slices have to be "
        "accumulated before");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<StepPart> StepPartsOf(const pb::FunctionProto& function) {
  std::vector<StepPart> parts;
  parts.reserve(function.nodes_size());
  for (const pb::NodeProto& node : function.nodes()) {
    const OpDef& def = DefOf(node);
    StepPart part = StepPart::kAny;
    if (def.source == OpSource::kSlices || HasInputOf(node, parts, StepPart::kFinish)) {
      part = StepPart::kFinish;
    } else if (VariesBySlice(def) || HasInputOf(node, parts, StepPart::kSlice)) {
      part = StepPart::kSlice;
    }
    parts.push_back(part);
  }
  return parts;
}

absl::Status CheckSlices(const pb::FunctionProto& function) {
  const bool sliced = function.micro_batches() > 1;
  const std::vector<StepPart> parts = StepPartsOf(function);
  for (int i = 0; i < function.nodes_size(); ++i) {
    const pb::NodeProto& node = function.nodes(i);
    absl::Status valid;
    if (sliced) {
      valid = CheckNode(node, parts, parts[i]);
    } else if (DefOf(node).source == OpSource::kSlices) {
      valid = absl::InvalidArgumentError("accumulates, but the function has no micro batches");
    }
    MU_RETURN_IF_ERROR(NodeError(function, i, valid));
  }
  if (!sliced) return absl::OkStatus();
  for (const pb::ReturnProto& value : function.returns()) {
    if (parts[value.value().node()] != StepPart::kSlice) continue;
    return NodeError(function, value.value().node(),
                     absl::InvalidArgumentError(absl::StrCat(
                         "is returned as \"", value.name(),
                         "\", but depends on one slice of the batch; the slices have to be "
                         "accumulated before")));
  }
  return absl::OkStatus();
}

}  // namespace mu
