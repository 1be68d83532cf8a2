#include "common/graph/verifier.h"

#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/op_table.h"
#include "common/graph/parameter_rules.h"
#include "common/graph/slice_rules.h"
#include "common/optimizer/schedule.h"

namespace mu {
namespace {

// Text from outside goes into messages cut short.
std::string Quoted(absl::string_view text) {
  constexpr size_t kLongest = 80;
  return text.size() <= kLongest ? absl::StrCat("\"", text, "\"")
                                 : absl::StrCat("\"", text.substr(0, kLongest), "...\"");
}

absl::Status FunctionError(const pb::FunctionProto& function, absl::string_view what) {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_USER);
  detail.set_function(function.name());
  return WithDetail(
      absl::InvalidArgumentError(absl::StrCat("function ", Quoted(function.name()), ": ", what)),
      detail);
}

absl::Status CheckReference(const pb::NodeInput& input, int nodes_before,
                            const FunctionSpecs& specs) {
  if (input.node() < 0 || input.node() >= nodes_before) {
    return absl::InvalidArgumentError(
        absl::StrCat("refers to node ", input.node(), ", which does not come before it"));
  }
  const int outputs = static_cast<int>(specs[input.node()].size());
  if (input.output() < 0 || input.output() >= outputs) {
    return absl::InvalidArgumentError(absl::StrCat("refers to output ", input.output(), " of node ",
                                                   input.node(), ", which has ", outputs));
  }
  return absl::OkStatus();
}

SpecsOr InferNode(const pb::NodeProto& node, int index, const FunctionSpecs& specs) {
  MU_ASSIGN_OR_RETURN(const OpDef* def, AllOps().Get(node.op()));
  std::vector<TensorSpec> inputs;
  inputs.reserve(node.inputs_size());
  for (const pb::NodeInput& input : node.inputs()) {
    MU_RETURN_IF_ERROR(CheckReference(input, index, specs));
    inputs.push_back(specs[input.node()][input.output()]);
  }
  return def->Infer(inputs, node.attrs());
}

absl::Status CheckArg(const pb::FunctionProto& function, const pb::NodeProto& node) {
  const int64_t index = node.attrs().at("index").i();
  if (index >= function.args_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is argument ", index, ", the function has ", function.args_size()));
  }
  const DType declared = function.args(static_cast<int>(index)).dtype();
  const DType read = node.attrs().at("dtype").dtype();
  if (declared == read) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("reads an argument as ", absl::string_view(DTypeName(read)),
                   " that is declared ", absl::string_view(DTypeName(declared))));
}

absl::Status CheckSignature(const pb::FunctionProto& function, const FunctionSpecs& specs) {
  std::set<std::string> names;
  for (const pb::ArgProto& arg : function.args()) {
    if (arg.name().empty() || !names.insert(arg.name()).second) {
      return FunctionError(function, absl::StrCat("two arguments are named ", Quoted(arg.name()),
                                                  ", or one has no name"));
    }
    if (ElementSize(arg.dtype()) == 0) {
      return FunctionError(function, absl::StrCat("argument ", Quoted(arg.name()), " has no type"));
    }
  }
  names.clear();
  for (const pb::ReturnProto& value : function.returns()) {
    if (value.name().empty() || !names.insert(value.name()).second) {
      return FunctionError(function, absl::StrCat("two returns are named ", Quoted(value.name()),
                                                  ", or one has no name"));
    }
    const absl::Status valid = CheckReference(value.value(), function.nodes_size(), specs);
    if (!valid.ok()) {
      return FunctionError(function,
                           absl::StrCat("return ", Quoted(value.name()), " ", valid.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRates(const pb::FunctionProto& function) {
  const std::vector<ScheduleProblem> problems =
      ProblemsOf(function.schedule(), /*rest_of_job=*/false);
  if (!problems.empty()) {
    return FunctionError(
        function, absl::StrCat("the schedule's ", problems[0].key, " ", problems[0].message));
  }
  if (!pb::StalenessDiscount_IsValid(function.staleness().discount())) {
    return FunctionError(function, absl::StrCat("unknown discount of late gradients ",
                                                function.staleness().discount()));
  }
  if (function.rate_arg() == 0) return absl::OkStatus();
  if (function.rate_arg() > static_cast<uint32_t>(function.args_size())) {
    return FunctionError(function, "there is no argument for the learning rate");
  }
  const pb::ArgProto& arg = function.args(static_cast<int>(function.rate_arg()) - 1);
  if (arg.dtype() == kFloat32) return absl::OkStatus();
  return FunctionError(function, absl::StrCat("argument ", Quoted(arg.name()),
                                              " multiplies learning rates, so it is a float32"));
}

absl::Status CheckMicroBatches(const pb::FunctionProto& function) {
  if (function.micro_batches() <= 1) return absl::OkStatus();
  if (function.dataset() == 0) {
    return FunctionError(function,
                         "micro_batches cuts the batch of a step, but it reads no dataset");
  }
  if (function.micro_batches() <= kMaxMicroBatches) return absl::OkStatus();
  return FunctionError(function, absl::StrCat("micro_batches must be at most ", kMaxMicroBatches,
                                              ", not ", function.micro_batches()));
}

absl::Status CheckStage(const OpDef& def, GraphStage stage) {
  if (stage == GraphStage::kTraced && def.internal) {
    return absl::InvalidArgumentError("is made by the passes only and may not be traced");
  }
  if (stage == GraphStage::kLowered && def.traced_only) {
    return absl::InvalidArgumentError("cannot be run: the graph was not lowered");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status NodeError(const pb::FunctionProto& function, int index, const absl::Status& status) {
  if (status.ok()) return status;
  const pb::NodeProto& node = function.nodes(index);
  std::string where = absl::StrCat("function ", Quoted(function.name()), ", op ", Quoted(node.op()),
                                   " (node ", index);
  if (!node.name().empty()) absl::StrAppend(&where, " ", Quoted(node.name()));
  absl::StrAppend(&where, ")");
  if (!node.location().file().empty()) {
    absl::StrAppend(&where, " at ", node.location().file(), ":", node.location().line());
  }
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_USER);
  detail.set_function(function.name());
  detail.set_op(node.op());
  *detail.mutable_location() = node.location();
  return WithDetail(Annotate(status, where), detail);
}

absl::StatusOr<FunctionSpecs> InferSpecs(const pb::FunctionProto& function) {
  FunctionSpecs specs;
  specs.reserve(function.nodes_size());
  for (int i = 0; i < function.nodes_size(); ++i) {
    SpecsOr outputs = InferNode(function.nodes(i), i, specs);
    if (!outputs.ok()) return NodeError(function, i, outputs.status());
    specs.push_back(*std::move(outputs));
  }
  return specs;
}

absl::Status VerifyFunction(const pb::FunctionProto& function, GraphStage stage) {
  MU_ASSIGN_OR_RETURN(const FunctionSpecs specs, InferSpecs(function));
  ParameterRules rules(stage);
  for (int i = 0; i < function.nodes_size(); ++i) {
    const pb::NodeProto& node = function.nodes(i);
    const OpDef& def = DefOf(node);
    absl::Status valid = CheckStage(def, stage);
    if (valid.ok() && def.source == OpSource::kArgument) valid = CheckArg(function, node);
    if (valid.ok() && def.source == OpSource::kColumn && function.dataset() == 0) {
      valid = absl::InvalidArgumentError("reads a column, but the function names no dataset");
    }
    if (valid.ok()) valid = rules.Check(function, node);
    if (!valid.ok()) return NodeError(function, i, valid);
  }
  MU_RETURN_IF_ERROR(CheckRates(function));
  MU_RETURN_IF_ERROR(CheckMicroBatches(function));
  MU_RETURN_IF_ERROR(CheckSignature(function, specs));
  return stage == GraphStage::kLowered ? CheckSlices(function) : absl::OkStatus();
}

}  // namespace mu
