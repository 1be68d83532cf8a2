// A whole cluster inside one process: real services over real gRPC on loopback, without processes
// to start. The one place where the coordinator's code includes the other roles.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/obs/telemetry.h"
#include "coordinator/launch/cluster_options.h"
#include "coordinator/launch/launch.h"
#include "psserver/node.h"
#include "worker/node.h"

namespace mu {
namespace {

// The nodes that the daemons' main() run, without their processes.
struct InProcessCluster {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<TempDirectory> cache;  // null: the user's
  std::string cache_dir;
  std::vector<std::unique_ptr<Telemetry>> telemetries;  // each daemon's own
  std::vector<std::unique_ptr<PsNode>> servers;
  std::vector<std::unique_ptr<WorkerNode>> workers;

  Telemetry* NewTelemetry() {
    telemetries.push_back(std::make_unique<Telemetry>());
    return telemetries.back().get();
  }
};

absl::Status StartServer(InProcessCluster& cluster, const std::string& coordinator, int index) {
  PsNodeOptions options;
  options.coordinator = coordinator;
  options.index = index;
  options.telemetry = cluster.NewTelemetry();
  MU_ASSIGN_OR_RETURN(auto node, PsNode::Listen(cluster.transport.get(), options));
  cluster.servers.push_back(std::move(node));
  return cluster.servers.back()->Register();
}

absl::Status StartWorker(InProcessCluster& cluster, const std::string& coordinator, int index) {
  WorkerNodeOptions options;
  options.coordinator = coordinator;
  options.index = index;
  options.worker.cache_dir = absl::StrCat(cluster.cache_dir, "/worker-", index);
  options.worker.telemetry = cluster.NewTelemetry();
  MU_ASSIGN_OR_RETURN(auto node, WorkerNode::Listen(cluster.transport.get(), options));
  cluster.workers.push_back(std::move(node));
  return cluster.workers.back()->Register();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> InProcess(ClusterOptions options) {
  if (options.listen.empty()) options.listen = "127.0.0.1:0";
  MU_RETURN_IF_ERROR(CheckCallsInTheClear(options, "InProcess"));
  MU_ASSIGN_OR_RETURN(std::unique_ptr<Coordinator> coordinator,
                      CreateCoordinator(options, NewGrpcTransport()));
  auto cluster = std::make_shared<InProcessCluster>();
  cluster->transport = NewGrpcTransport();
  cluster->cache_dir = options.cache_dir;
  if (cluster->cache_dir.empty()) {
    MU_ASSIGN_OR_RETURN(TempDirectory cache, TempDirectory::Create("muster-in-process"));
    cluster->cache = std::make_unique<TempDirectory>(std::move(cache));
    cluster->cache_dir = cluster->cache->path();
  }
  for (int i = 0; i < options.ps; ++i) {
    MU_RETURN_IF_ERROR(StartServer(*cluster, coordinator->address(), i));
  }
  for (int i = 0; i < options.workers; ++i) {
    MU_RETURN_IF_ERROR(StartWorker(*cluster, coordinator->address(), i));
  }
  coordinator->OwnEnvironment(std::move(cluster));
  MU_RETURN_IF_ERROR(coordinator->WaitForCluster(options.workers));
  return coordinator;
}

}  // namespace mu
