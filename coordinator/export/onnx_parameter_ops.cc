// Variables and tables. Graphs are exported as they are traced, so what coordinator/passes makes of
// lookups never comes here.
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/export/onnx_ops.h"

namespace mu {
namespace {

using Names = std::vector<std::string>;

constexpr char kUpdate[] = "it changes parameters, which a prediction does not";
constexpr char kLowered[] = "only graphs for workers have it; a traced one has embedding_lookup";

OnnxOutputs VariableRead(OnnxOp& o) {
  MU_ASSIGN_OR_RETURN(const StoredValue value, o.stored(o.attrs.String("variable"), o.out[0]));
  return Names{o.graph.Value(value)};
}

OnnxOutputs VariableRows(OnnxOp& o) {
  const TensorSpec whole{o.attrs.Type("dtype"), o.attrs.GetShape("shape")};
  MU_ASSIGN_OR_RETURN(const StoredValue value, o.stored(o.attrs.String("variable"), whole));
  const int64_t first = o.attrs.Int("first");
  return Names{
      o.graph.Add("Slice", {o.graph.Value(value), o.graph.Ints({first}),
                            o.graph.Ints({first + o.attrs.Int("count")}), o.graph.Ints({0})})};
}

OnnxOutputs ShardedMatmul(OnnxOp& o) {
  const TensorSpec whole{kFloat32, o.attrs.GetShape("shape")};
  MU_ASSIGN_OR_RETURN(const StoredValue value, o.stored(o.attrs.String("variable"), whole));
  return Names{
      o.graph.Add("Gemm", {o.inputs[0], o.graph.Value(value)}, OnnxAttrs().Int("transB", 1))};
}

// Bags of rows by their number: ONNX knows no ragged arrays, but adds up by index.
class Bags {
 public:
  Bags(OnnxOp* o, std::string rows, int64_t dim)
      : graph_(o->graph), rows_(std::move(rows)), dim_(dim) {
    const std::string splits = graph_.Cast(o->inputs[1], kInt64);
    values_ = graph_.ShapeOf(o->inputs[0]);
    bags_ = graph_.Add("Sub", {graph_.ShapeOf(splits), graph_.Ints({1})});
    // Each bag but the first raises the number by one where it begins: so a value's bag is the sum
    // of all that lies before. Empty bags at the end begin behind the last value.
    const std::string begins = graph_.SliceVector(splits, 1, -1);
    const std::string places = graph_.Add("Add", {values_, graph_.Ints({1})});
    const std::string raised = graph_.Add(
        "ScatterElements",
        {graph_.Fill(places, kInt64, 0), begins, graph_.Fill(graph_.ShapeOf(begins), kInt64, 1)},
        OnnxAttrs().Int("axis", 0).String("reduction", "add"));
    const std::string numbers = graph_.Add("CumSum", {raised, graph_.Scalar(kInt64, 0)});
    bag_of_ = graph_.Unsqueeze(graph_.SliceVector(numbers, 0, -1), {-1});
    weights_ = o->inputs.size() > 2 ? o->inputs[2] : graph_.Fill(values_, kFloat32, 1);
    if (o->inputs.size() > 2) rows_ = graph_.Add("Mul", {rows_, graph_.Unsqueeze(weights_, {-1})});
  }

  // Of the rows, each times its weight: [bags, dim].
  std::string Sum() {
    const std::string shape =
        graph_.Add("Concat", {bags_, graph_.Ints({dim_})}, OnnxAttrs().Int("axis", 0));
    return Scatter(shape, rows_);
  }
  // Of the weights, or their squares: [bags, 1].
  std::string SumOfWeights(bool squared) {
    const std::string weights = squared ? graph_.Add("Mul", {weights_, weights_}) : weights_;
    return graph_.Unsqueeze(Scatter(bags_, weights), {-1});
  }

 private:
  std::string Scatter(const std::string& shape, const std::string& values) {
    return graph_.Add("ScatterND", {graph_.Fill(shape, kFloat32, 0), bag_of_, values},
                      OnnxAttrs().String("reduction", "add"));
  }

  OnnxGraph& graph_;
  std::string rows_;     // [values, dim]
  std::string weights_;  // [values]
  const int64_t dim_;
  std::string values_;  // int64 [1]: how many
  std::string bags_;    // int64 [1]: how many
  std::string bag_of_;  // int64 [values, 1]
};

// sum / by, and 0 where `by` is 0.
std::string DivideOrZero(OnnxGraph& graph, const std::string& sum, const std::string& by) {
  const std::string none = graph.Add("Equal", {by, graph.Scalar(0.0f)});
  const std::string safe = graph.Add("Where", {none, graph.Scalar(1.0f), by});
  return graph.Add("Where", {none, graph.Scalar(0.0f), graph.Add("Div", {sum, safe})});
}

OnnxOutputs EmbeddingLookup(OnnxOp& o) {
  const int64_t dim = o.attrs.Int("dim");
  MU_ASSIGN_OR_RETURN(
      const StoredValue table,
      o.stored(o.attrs.String("table"), {kFloat32, Shape({o.attrs.Int("rows"), dim})}));
  const std::string rows =
      o.graph.Add("Gather", {o.graph.Value(table), o.inputs[0]}, OnnxAttrs().Int("axis", 0));
  const std::string& combiner = o.attrs.String("combiner");
  if (combiner == "none") return Names{rows};
  Bags bags(&o, rows, dim);
  const std::string sum = bags.Sum();
  if (combiner == "sum") return Names{sum};
  if (combiner == "mean") return Names{DivideOrZero(o.graph, sum, bags.SumOfWeights(false))};
  if (combiner == "sqrtn") {
    const std::string squares = bags.SumOfWeights(true);
    return Names{DivideOrZero(o.graph, sum, o.graph.Add("Sqrt", {squares}))};
  }
  return absl::UnimplementedError(absl::StrCat("the combiner \"", combiner, "\" has no ONNX form"));
}

}  // namespace

void AddOnnxParameterRules(OnnxRules* rules) {
  rules->Add("variable_read", VariableRead);
  rules->Add("variable_rows", VariableRows);
  rules->Add("sharded_matmul", ShardedMatmul);
  rules->Add("embedding_lookup", EmbeddingLookup);
  rules->AddNone("sharded_matmul_back", kUpdate);
  for (const char* op : {"assign_add", "scatter_add", "assign", "scatter_update", "apply_gradient",
                         "apply_product_gradient", "embedding_gradient", "push_rows"})
    rules->AddNone(op, kUpdate);
  for (const char* op : {"unique", "pull_rows", "segment_combine", "segment_combine_grad",
                         "accumulate", "accumulate_rows"})
    rules->AddNone(op, kLowered);
}

}  // namespace mu
