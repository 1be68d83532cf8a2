#include "coordinator/frontend/summary.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/graph/verifier.h"

namespace mu {
namespace {

// The shapes that one record has: sizes that are not known are 1, of the splits of its lists 2.
absl::StatusOr<FunctionSpecs> SpecsOfOneRecord(pb::FunctionProto function) {
  for (pb::NodeProto& node : *function.mutable_nodes()) {
    if (node.op() != "batch_column") continue;
    const bool splits = absl::EndsWith(node.attrs().at("column").s(), ".splits");
    pb::ShapeProto* const shape = (*node.mutable_attrs())["shape"].mutable_shape();
    for (int i = 0; i < shape->dims_size(); ++i) {
      if (shape->dims(i) == kUnknownDim) shape->set_dims(i, splits ? 2 : 1);
    }
  }
  return InferSpecs(function);
}

// Multiply-adds count as two.
double FlopsOf(const pb::NodeProto& node, const FunctionSpecs& specs, int index) {
  const auto input = [&](int i) -> const Shape& {
    return specs[node.inputs(i).node()][node.inputs(i).output()].shape;
  };
  const auto elements = [](const Shape& shape) {
    double product = 1;
    for (const int64_t dim : shape) product *= static_cast<double>(std::max<int64_t>(dim, 1));
    return product;
  };
  const double outputs = elements(specs[index][0].shape);
  if (node.op() == "matmul" || node.op() == "batch_matmul") {
    const auto transposed = node.attrs().find("transpose_a");
    const bool ta = transposed != node.attrs().end() && transposed->second.b();
    const Shape& a = input(0);
    return 2 * outputs * static_cast<double>(a[a.rank() - (ta ? 2 : 1)]);
  }
  if (node.op() == "sharded_matmul") return 2 * outputs * static_cast<double>(input(0)[1]);
  if (node.op() == "conv2d") {
    const Shape& filter = input(1);
    return 2 * outputs * static_cast<double>(filter[0] * filter[1] * filter[2]);
  }
  if (node.op() == "pairwise_interactions") return 2 * outputs * static_cast<double>(input(0)[2]);
  return 0;
}

std::string LayerNameOf(const std::string& parameter) {
  const size_t slash = parameter.rfind('/');
  return slash == std::string::npos ? parameter : parameter.substr(0, slash);
}

int64_t ElementsOf(const pb::ShapeProto& shape) {
  int64_t elements = 1;
  for (const int64_t dim : shape.dims()) elements *= dim;
  return elements;
}

class Summarizer {
 public:
  Summarizer(const pb::FunctionProto& function, const FunctionSpecs& shown,
             const FunctionSpecs& sized)
      : function_(function), shown_(shown), sized_(sized), layer_(function.nodes_size(), -1) {}

  std::vector<LayerSummary> Run() {
    for (int i = 0; i < function_.nodes_size(); ++i) {
      const pb::NodeProto& node = function_.nodes(i);
      if (node.op() == "variable_read" || shown_[i].empty()) continue;
      layer_[i] = LayerOf(i);
      if (layer_[i] < 0) continue;
      LayerSummary& layer = layers_[layer_[i]];
      layer.output = shown_[i][0].ToString();
      layer.flops += FlopsOf(node, sized_, i);
    }
    return std::move(layers_);
  }

 private:
  // The layer of the parameters that an op reads, else that of its latest input; -1 for what comes
  // before any layer.
  int LayerOf(int index) {
    const pb::NodeProto& node = function_.nodes(index);
    if (node.op() == "embedding_lookup") {
      const int64_t elements = node.attrs().at("rows").i() * node.attrs().at("dim").i();
      const std::string& table = node.attrs().at("table").s();
      return AddParameter(table, node.op(), table, elements);
    }
    int own = -1;
    int latest = -1;
    if (node.op() == "sharded_matmul" || node.op() == "variable_rows") {  // not read whole
      const std::string& variable = node.attrs().at("variable").s();
      own = AddParameter(LayerNameOf(variable), node.op(), variable,
                         ElementsOf(node.attrs().at("shape").shape()));
    }
    for (const pb::NodeInput& input : node.inputs()) {
      const pb::NodeProto& from = function_.nodes(input.node());
      if (from.op() == "variable_read") {
        const std::string& variable = from.attrs().at("variable").s();
        const int layer = AddParameter(LayerNameOf(variable), node.op(), variable,
                                       ElementsOf(from.attrs().at("shape").shape()));
        if (own < 0) own = layer;
      } else {
        latest = std::max(latest, layer_[input.node()]);
      }
    }
    return own >= 0 ? own : latest;
  }

  // The layer's index.
  int AddParameter(const std::string& layer, const std::string& op, const std::string& parameter,
                   int64_t elements) {
    const auto [found, added] = by_name_.emplace(layer, static_cast<int>(layers_.size()));
    if (added) layers_.push_back({layer, op, "", 0, 0});
    if (parameters_.insert(parameter).second) layers_[found->second].parameters += elements;
    return found->second;
  }

  const pb::FunctionProto& function_;
  const FunctionSpecs& shown_;
  const FunctionSpecs& sized_;
  std::vector<int> layer_;  // by node
  std::vector<LayerSummary> layers_;
  std::map<std::string, int> by_name_;
  std::set<std::string> parameters_;
};

}  // namespace

absl::StatusOr<std::vector<LayerSummary>> Summarize(FunctionBuilder& builder) {
  TraceGraph& graph = builder.graph();
  MU_RETURN_IF_ERROR(graph.status());
  MU_ASSIGN_OR_RETURN(const FunctionSpecs sized, SpecsOfOneRecord(graph.proto()));
  return Summarizer(graph.proto(), graph.specs(), sized).Run();
}

absl::StatusOr<std::string> Summary(FunctionBuilder& builder) {
  MU_ASSIGN_OR_RETURN(const std::vector<LayerSummary> layers, Summarize(builder));
  size_t name = 5, op = 2, output = 6;
  for (const LayerSummary& layer : layers) {
    name = std::max(name, layer.name.size());
    op = std::max(op, layer.op.size());
    output = std::max(output, layer.output.size());
  }
  std::string text;
  const auto line = [&](const std::string& a, const std::string& b, const std::string& c,
                        const std::string& parameters, const std::string& flops) {
    absl::StrAppendFormat(&text, "%-*s  %-*s  %-*s  %14s  %14s\n", name, a, op, b, output, c,
                          parameters, flops);
  };
  line("layer", "op", "output", "parameters", "FLOPs/record");
  int64_t parameters = 0;
  double flops = 0;
  for (const LayerSummary& layer : layers) {
    line(layer.name, layer.op, layer.output, absl::StrCat(layer.parameters),
         absl::StrFormat("%.0f", layer.flops));
    parameters += layer.parameters;
    flops += layer.flops;
  }
  line("all", "", "", absl::StrCat(parameters), absl::StrFormat("%.0f", flops));
  return text;
}

}  // namespace mu
