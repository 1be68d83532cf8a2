#include "worker/worker_function.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_kind.h"
#include "common/graph/fingerprint.h"
#include "common/graph/op_table.h"

namespace mu {
namespace {

bool ReadOnly(const muster::FunctionProto& graph) {
  return std::none_of(graph.nodes().begin(), graph.nodes().end(),
                      [](const muster::NodeProto& node) {
                        const OpDef* op = AllOps().Find(node.op());
                        return op == nullptr || op->has_effect();
                      });
}

}  // namespace

WorkerFunction::WorkerFunction(muster::FunctionProto graph,
                               std::shared_ptr<const CompiledFunction> compiled,
                               Telemetry* telemetry)
    : graph(std::move(graph)),
      read_only(ReadOnly(this->graph)),
      executor(std::move(compiled), telemetry) {}

absl::StatusOr<std::shared_ptr<WorkerFunction>> CompileWorkerFunction(
    const muster::FunctionProto& graph, Fingerprint fingerprint,
    const muster::RoutingProto& routing, Telemetry* telemetry) {
  if (const Fingerprint own = FingerprintOf(graph); own != fingerprint) {
    return absl::InvalidArgumentError(
        absl::StrFormat("function '%s' has fingerprint %016x, but the request says %016x: "
                        "coordinator and worker are "
                        "not of the same version",
                        graph.name(), own.value(), fingerprint.value()));
  }
  auto compiled = Compile(graph, routing);
  if (!compiled.ok()) {
    // A graph that does not verify or compile is wrong on every worker.
    const absl::Status& status = compiled.status();
    return IsMachineCode(status.code()) ? status
                                        : WithKind(status, pb::ERROR_USER, pb::ROLE_WORKER);
  }
  return std::make_shared<WorkerFunction>(graph, *std::move(compiled), telemetry);
}

}  // namespace mu
