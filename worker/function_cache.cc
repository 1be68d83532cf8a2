#include "worker/function_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_kind.h"
#include "common/graph/fingerprint.h"
#include "common/graph/op_table.h"
#include "worker/request_gate.h"

namespace mu {
namespace {

bool ReadOnly(const muster::FunctionProto& graph) {
  return std::none_of(graph.nodes().begin(), graph.nodes().end(),
                      [](const muster::NodeProto& node) {
                        const OpDef* op = AllOps().Find(node.op());
                        return op == nullptr || op->has_effect;
                      });
}

}  // namespace

WorkerFunction::WorkerFunction(muster::FunctionProto graph,
                               std::shared_ptr<const CompiledFunction> compiled,
                               Telemetry* telemetry)
    : graph(std::move(graph)),
      read_only(ReadOnly(this->graph)),
      executor(std::move(compiled), telemetry) {}

absl::Status FunctionCache::Install(const muster::FunctionProto& graph, Fingerprint fingerprint,
                                    const muster::RoutingProto& routing, uint64_t clears) {
  {
    MutexLock lock(&mutex_);
    if (clears == clears_ && functions_.contains(fingerprint)) return absl::OkStatus();
  }
  if (const Fingerprint own = FingerprintOf(graph); own != fingerprint) {
    return absl::InvalidArgumentError(
        absl::StrFormat("function '%s' has fingerprint %016x, but the request says %016x: "
                        "coordinator and worker are "
                        "not of the same version",
                        graph.name(), own.value(), fingerprint.value()));
  }
  auto compiled = Compile(graph, routing);  // slow: not under the lock
  if (!compiled.ok()) {
    // A graph that does not verify or compile is wrong on every worker.
    const absl::Status& status = compiled.status();
    return IsMachineCode(status.code()) ? status
                                        : WithKind(status, pb::ERROR_USER, pb::ROLE_WORKER);
  }
  auto installed = std::make_shared<WorkerFunction>(graph, *std::move(compiled), telemetry_);
  MutexLock lock(&mutex_);
  if (clears != clears_) {
    return WorkerRefusal(pb::ERROR_STALE,
                         "a newer coordinator took over while the function was compiled");
  }
  functions_.try_emplace(fingerprint, std::move(installed));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<WorkerFunction>> FunctionCache::Find(Fingerprint fingerprint) const {
  MutexLock lock(&mutex_);
  const auto it = functions_.find(fingerprint);
  if (it == functions_.end()) {
    return WorkerRefusal(pb::ERROR_NOT_INSTALLED,
                         absl::StrFormat("function %016x is not installed on this worker: call "
                                         "InstallFunction first",
                                         fingerprint.value()));
  }
  return it->second;
}

void FunctionCache::Clear() {
  MutexLock lock(&mutex_);
  ++clears_;
  functions_.clear();
}

uint64_t FunctionCache::clears() const {
  MutexLock lock(&mutex_);
  return clears_;
}

}  // namespace mu
