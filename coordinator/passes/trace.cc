#include "coordinator/passes/trace.h"

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/graph/op_table.h"
#include "common/graph/verifier.h"
#include "coordinator/autodiff/gradients.h"
#include "coordinator/passes/passes.h"

namespace mu {

namespace {

absl::Status InFunction(const std::string& name, const absl::Status& status) {
  return Annotate(status, absl::StrCat("function \"", name, "\""));
}

std::shared_ptr<TraceGraph> RunBuild(const std::string& name,
                                     const std::function<void(FunctionBuilder&)>& build,
                                     uint64_t seed) {
  auto graph = std::make_shared<TraceGraph>(name);
  graph->set_seed(HashCombine(seed, HashString(name)));
  TraceGraph::Scope scope(graph.get());
  FunctionBuilder builder(graph);
  build(builder);
  return graph;
}

}  // namespace

absl::StatusOr<pb::FunctionProto> Trace(const std::string& name,
                                        const std::function<void(FunctionBuilder&)>& build,
                                        uint64_t seed) {
  const std::shared_ptr<TraceGraph> graph = RunBuild(name, build, seed);
  if (!graph->status().ok()) return InFunction(name, graph->status());
  std::vector<pb::NodeInput> losses;
  for (const MinimizeRequest& request : graph->minimize_requests()) losses.push_back(request.loss);
  if (const absl::Status added = AddGradients(*graph); !added.ok()) return InFunction(name, added);
  MU_RETURN_IF_ERROR(VerifyFunction(graph->proto(), GraphStage::kTraced));
  const GradientOptions options = graph->gradient_options().value_or(GradientOptions());
  MU_ASSIGN_OR_RETURN(const pb::FunctionProto placed,
                      PlaceProducts(graph->proto(), options, graph->products(), &losses));
  MU_ASSIGN_OR_RETURN(const pb::FunctionProto traced, AccumulateResults(placed, losses));
  MU_ASSIGN_OR_RETURN(pb::FunctionProto lowered, LowerFunction(traced, options));
  MU_RETURN_IF_ERROR(VerifyFunction(lowered, GraphStage::kLowered));
  return lowered;
}

absl::StatusOr<pb::FunctionProto> TraceForward(const std::string& name,
                                               const std::function<void(FunctionBuilder&)>& build) {
  const std::shared_ptr<TraceGraph> graph = RunBuild(name, build, /*seed=*/1);
  if (!graph->status().ok()) return InFunction(name, graph->status());
  if (!graph->minimize_requests().empty())
    return InFunction(name, absl::InvalidArgumentError("it minimizes a loss"));
  pb::FunctionProto function = ShareCommonNodes(PruneDeadNodes(graph->proto()));
  MU_RETURN_IF_ERROR(VerifyFunction(function, GraphStage::kTraced));
  for (int n = 0; n < function.nodes_size(); ++n) {
    if (!DefOf(function.nodes(n)).has_effect()) continue;
    return NodeError(function, n, absl::InvalidArgumentError("changes parameters"));
  }
  return function;
}

}  // namespace mu
