#include "coordinator/export/onnx_export.h"

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/graph/nearest_name.h"
#include "common/graph/op_table.h"
#include "common/graph/verifier.h"
#include "coordinator/export/onnx_ops.h"

namespace mu {
namespace {

constexpr char kBatch[] = "batch";

absl::StatusOr<StoredValue> FindStored(const CheckpointValues& checkpoint, const std::string& name,
                                       const TensorSpec& spec) {
  const StoredValue* value = checkpoint.Find(name);
  if (value == nullptr) {
    std::vector<std::string> names;
    for (const StoredValue& each : checkpoint.values()) names.push_back(each.name);
    return absl::NotFoundError(
        absl::StrCat("the checkpoint has no '", name, "'", DidYouMean(name, names)));
  }
  const TensorSpec stored{value->dtype, value->shape};
  if (stored == spec) return *value;
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is ", spec.ToString(),
                                                 " in the model and ", stored.ToString(),
                                                 " in the checkpoint"));
}

class Exporter {
 public:
  Exporter(const pb::FunctionProto& function, const CheckpointValues& checkpoint)
      : function_(function), checkpoint_(checkpoint), graph_(function.name()) {}

  absl::StatusOr<OnnxGraph> Run() {
    MU_ASSIGN_OR_RETURN(specs_, InferSpecs(function_));
    NoteColumns();
    for (int n = 0; n < function_.nodes_size(); ++n) {
      absl::StatusOr<std::vector<std::string>> outputs = AddNode(n);
      if (!outputs.ok()) return NodeError(function_, n, AsUsers(outputs.status()));
      values_.push_back(*std::move(outputs));
    }
    for (const pb::ReturnProto& output : function_.returns()) {
      const auto node = static_cast<size_t>(output.value().node());
      const auto index = static_cast<size_t>(output.value().output());
      const TensorSpec& spec = specs_[node][index];
      graph_.AddOutput(output.name(), spec, SizesOf(output.name(), spec), values_[node][index]);
    }
    return std::move(graph_);
  }

 private:
  static absl::Status AsUsers(const absl::Status& status) {
    return absl::InvalidArgumentError(status.message());
  }

  void NoteColumns() {
    for (const pb::NodeProto& node : function_.nodes()) {
      if (node.op() == "batch_column") columns_.insert(node.attrs().at("column").s());
    }
    for (const std::string& column : columns_) graph_.ReserveInput(column);
  }

  // A list column's parts have sizes of their own.
  bool IsPartOfList(const std::string& column) const {
    for (const char* part : {".values", ".splits", ".weights"}) {
      absl::string_view name = column;
      if (absl::ConsumeSuffix(&name, part)) return columns_.contains(absl::StrCat(name, ".splits"));
    }
    return false;
  }

  std::vector<std::string> SizesOf(const std::string& name, const TensorSpec& spec) const {
    std::vector<std::string> sizes(static_cast<size_t>(spec.shape.rank()));
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      sizes[axis] = axis > 0 ? absl::StrCat(name, "_", axis) : IsPartOfList(name) ? name : kBatch;
    }
    // Each value has its weight.
    if (absl::EndsWith(name, ".weights") && IsPartOfList(name))
      sizes[0] = absl::StrCat(absl::StripSuffix(name, ".weights"), ".values");
    return sizes;
  }

  std::vector<std::string> AddColumn(const pb::NodeProto& node, const TensorSpec& spec) {
    const std::string& column = node.attrs().at("column").s();
    graph_.AddInput(column, spec, SizesOf(column, spec), "");
    return {column};
  }

  OnnxOutputs AddNode(int n) {
    const pb::NodeProto& node = function_.nodes(n);
    const std::vector<TensorSpec>& out = specs_[static_cast<size_t>(n)];
    if (node.op() == "batch_column") return AddColumn(node, out[0]);
    const OnnxRule* rule = AllOnnxRules().Find(node.op());
    if (rule == nullptr || rule->emit == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("ONNX has no form of this op",
                       rule == nullptr ? std::string() : absl::StrCat(": ", rule->reason)));
    }
    OnnxOp op{node,
              DefOf(node).Read(node.attrs()),
              {},
              out,
              {},
              graph_,
              [this](const std::string& name, const TensorSpec& spec) {
                return FindStored(checkpoint_, name, spec);
              }};
    for (const pb::NodeInput& input : node.inputs()) {
      const auto from = static_cast<size_t>(input.node());
      const auto index = static_cast<size_t>(input.output());
      op.in.push_back(specs_[from][index]);
      op.inputs.push_back(values_[from][index]);
    }
    graph_.set_place(
        absl::StrCat(node.op(), " at ", node.location().file(), ":", node.location().line()));
    return rule->emit(op);
  }

  const pb::FunctionProto& function_;
  const CheckpointValues& checkpoint_;
  OnnxGraph graph_;
  FunctionSpecs specs_;
  std::vector<std::vector<std::string>> values_;  // by node: of its outputs
  std::set<std::string> columns_;
};

}  // namespace

absl::StatusOr<OnnxGraph> OnnxOf(const pb::FunctionProto& function,
                                 const CheckpointValues& checkpoint) {
  return Exporter(function, checkpoint).Run();
}

}  // namespace mu
