#include "coordinator/passes/trace.h"

#include "common/base/hash.h"
#include "common/graph/verifier.h"
#include "coordinator/autodiff/gradients.h"
#include "coordinator/passes/passes.h"

namespace mu {

absl::StatusOr<pb::FunctionProto> Trace(const std::string& name,
                                        const std::function<void(FunctionBuilder&)>& build,
                                        uint64_t seed) {
  const auto graph = std::make_shared<TraceGraph>(name);
  graph->set_seed(HashCombine(seed, HashString(name)));
  {
    TraceGraph::Scope scope(graph.get());
    FunctionBuilder builder(graph);
    build(builder);
  }
  const auto in_function = [&](const absl::Status& status) {
    return Annotate(status, absl::StrCat("function \"", name, "\""));
  };
  if (!graph->status().ok()) return in_function(graph->status());
  if (const absl::Status added = AddGradients(*graph); !added.ok()) return in_function(added);
  MU_RETURN_IF_ERROR(VerifyFunction(graph->proto(), GraphStage::kTraced));
  MU_ASSIGN_OR_RETURN(pb::FunctionProto lowered, LowerFunction(graph->proto()));
  MU_RETURN_IF_ERROR(VerifyFunction(lowered, GraphStage::kLowered));
  return lowered;
}

}  // namespace mu
