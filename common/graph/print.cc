#include "common/graph/print.h"

#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/graph/op_table.h"
#include "common/graph/verifier.h"
#include "common/tensor/tensor.h"

namespace mu {
namespace {

template <typename T>
std::string Elements(const Tensor& tensor) {
  constexpr int64_t kMost = 4;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < tensor.elements() && i < kMost; ++i) {
    texts.push_back(absl::StrCat(tensor.data<T>()[i]));
  }
  if (tensor.elements() > kMost) texts.push_back("...");
  return absl::StrJoin(texts, ", ");
}

std::string TensorToText(const pb::TensorProto& proto) {
  const absl::StatusOr<Tensor> tensor = Tensor::FromProto(proto);
  if (!tensor.ok()) return "invalid tensor";
  const std::string spec = TensorSpec{tensor->dtype(), tensor->shape()}.ToString();
  switch (tensor->dtype()) {
    case kFloat32:
      return absl::StrCat(spec, "{", Elements<float>(*tensor), "}");
    case kInt32:
      return absl::StrCat(spec, "{", Elements<int32_t>(*tensor), "}");
    case kInt64:
      return absl::StrCat(spec, "{", Elements<int64_t>(*tensor), "}");
    case kUInt8:
      return absl::StrCat(spec, "{", Elements<uint8_t>(*tensor), "}");
    case kBool:
      return absl::StrCat(spec, "{", Elements<bool>(*tensor), "}");
    default:
      return spec;
  }
}

std::string InputToText(const pb::FunctionProto& function, const pb::NodeInput& input) {
  const std::string name = absl::StrCat("%", input.node());
  const OpDef* const def = input.node() >= 0 && input.node() < function.nodes_size()
                               ? AllOps().Find(function.nodes(input.node()).op())
                               : nullptr;
  const bool many = def != nullptr && def->outputs < 0;
  return many || input.output() != 0 ? absl::StrCat(name, ":", input.output()) : name;
}

std::string SpecsToText(const std::vector<TensorSpec>& specs) {
  const std::string joined = absl::StrJoin(
      specs, ", ", [](std::string* out, const TensorSpec& spec) { out->append(spec.ToString()); });
  return specs.size() == 1 ? joined : absl::StrCat("(", joined, ")");
}

std::string AttrsToText(const pb::NodeProto& node) {
  const std::map<std::string, pb::AttrValue> sorted(node.attrs().begin(), node.attrs().end());
  return absl::StrJoin(sorted, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, "=", AttrToText(entry.second));
  });
}

const char* ColourOf(const std::string& op) {
  const OpDef* def = AllOps().Find(op);
  if (def == nullptr) return "red";
  if (def->has_effect()) return "salmon";
  if (def->reads_parameter()) return "lightblue";
  if (def->source != OpSource::kNone) return "palegreen";
  return "white";
}

}  // namespace

std::string AttrToText(const pb::AttrValue& value) {
  switch (value.value_case()) {
    case pb::AttrValue::kI:
      return absl::StrCat(value.i());
    case pb::AttrValue::kF:
      return absl::StrCat(value.f());
    case pb::AttrValue::kB:
      return value.b() ? "true" : "false";
    case pb::AttrValue::kS:
      return absl::StrCat("\"", absl::CEscape(value.s()), "\"");
    case pb::AttrValue::kInts:
      return absl::StrCat("[", absl::StrJoin(value.ints().value(), ", "), "]");
    case pb::AttrValue::kDtype: {
      const absl::string_view name = DTypeName(value.dtype());
      return std::string(name);
    }
    case pb::AttrValue::kShape:
      return Shape(value.shape()).ToString();
    case pb::AttrValue::kTensor:
      return TensorToText(value.tensor());
    case pb::AttrValue::VALUE_NOT_SET:
      return "unset";
  }
  return "unset";
}

std::string FunctionToText(const pb::FunctionProto& function) {
  const absl::StatusOr<FunctionSpecs> specs = InferSpecs(function);
  std::string text = absl::StrCat("function ", function.name(), "(");
  for (int i = 0; i < function.args_size(); ++i) {
    const absl::string_view dtype = DTypeName(function.args(i).dtype());
    absl::StrAppend(&text, i > 0 ? ", " : "", function.args(i).name(), ": ", dtype);
  }
  absl::StrAppend(&text, ")");
  if (function.dataset() != 0) absl::StrAppend(&text, " dataset ", function.dataset());
  absl::StrAppend(&text, "\n");
  for (int i = 0; i < function.nodes_size(); ++i) {
    const pb::NodeProto& node = function.nodes(i);
    absl::StrAppend(&text, "  %", i, " = ", node.op(), "(");
    for (int j = 0; j < node.inputs_size(); ++j) {
      absl::StrAppend(&text, j > 0 ? ", " : "", InputToText(function, node.inputs(j)));
    }
    absl::StrAppend(&text, ")");
    if (!node.attrs().empty()) absl::StrAppend(&text, " {", AttrsToText(node), "}");
    if (specs.ok()) absl::StrAppend(&text, " : ", SpecsToText((*specs)[i]));
    if (!node.location().file().empty()) {
      absl::StrAppend(&text, "  # ", node.location().file(), ":", node.location().line());
    }
    absl::StrAppend(&text, "\n");
  }
  for (const pb::ReturnProto& value : function.returns()) {
    absl::StrAppend(&text, "  return ", value.name(), " = ", InputToText(function, value.value()),
                    "\n");
  }
  return text;
}

std::string FunctionToDot(const pb::FunctionProto& function) {
  const absl::StatusOr<FunctionSpecs> specs = InferSpecs(function);
  std::string text = absl::StrCat("digraph \"", absl::CEscape(function.name()), "\" {\n",
                                  "  node [shape=box, style=filled, fillcolor=white];\n");
  for (int i = 0; i < function.nodes_size(); ++i) {
    const pb::NodeProto& node = function.nodes(i);
    const std::string label =
        absl::StrCat("%", i, " ", node.op(), node.attrs().empty() ? "" : "\n", AttrsToText(node));
    absl::StrAppend(&text, "  n", i, " [label=\"", absl::CEscape(label),
                    "\", fillcolor=", ColourOf(node.op()), "];\n");
    for (const pb::NodeInput& input : node.inputs()) {
      absl::StrAppend(&text, "  n", input.node(), " -> n", i);
      if (specs.ok()) {
        absl::StrAppend(&text, " [label=\"", (*specs)[input.node()][input.output()].ToString(),
                        "\"]");
      }
      absl::StrAppend(&text, ";\n");
    }
  }
  for (int i = 0; i < function.returns_size(); ++i) {
    absl::StrAppend(&text, "  r", i, " [label=\"", absl::CEscape(function.returns(i).name()),
                    "\", shape=ellipse];\n  n", function.returns(i).value().node(), " -> r", i,
                    ";\n");
  }
  return absl::StrCat(text, "}\n");
}

}  // namespace mu
