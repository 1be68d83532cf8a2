// A whole cluster over the transport in memory, with the real coordinator, workers and servers,
// every call of which goes through one plan of faults. Not thread safe, but for coordinator() and
// faults().
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/rpc/faults.h"
#include "coordinator/launch/cluster_options.h"
#include "psserver/node.h"
#include "tests/testing/matchers.h"
#include "worker/node.h"

namespace mu::testing {

class MemoryCluster {
 public:
  // Returns when all have registered. `worker`: of each of them, but for its directory.
  static absl::StatusOr<std::unique_ptr<MemoryCluster>> Start(int workers, int ps,
                                                              std::shared_ptr<FaultPlan> faults,
                                                              const WorkerOptions& worker = {}) {
    MU_ASSIGN_OR_RETURN(TempDirectory directory, TempDirectory::Create("muster-memory"));
    std::unique_ptr<MemoryCluster> cluster(
        new MemoryCluster(std::move(directory), std::move(faults), worker));
    ClusterOptions options;
    options.workers = workers;
    options.ps = ps;
    options.job_dir = cluster->directory();
    options.listen = "memory:0";
    options.heartbeat = absl::Milliseconds(10);
    // A replaced server's lease runs so long, and its replacement waits for it
    options.member_timeout = absl::Seconds(1);
    MU_ASSIGN_OR_RETURN(
        cluster->coordinator_,
        CreateCoordinator(options, NewFaultyTransport(cluster->network_, cluster->faults_)));
    for (int i = 0; i < ps; ++i) MU_RETURN_IF_ERROR(cluster->StartServer(i));
    for (int i = 0; i < workers; ++i) MU_RETURN_IF_ERROR(cluster->StartWorker(i));
    MU_RETURN_IF_ERROR(cluster->coordinator_->WaitForCluster(workers));
    return cluster;
  }
  ~MemoryCluster() {
    coordinator_.reset();
    workers_.clear();
    servers_.clear();
    former_servers_.clear();
  }

  Coordinator& coordinator() { return *coordinator_; }
  FaultPlan& faults() { return *faults_; }
  const std::string& directory() const { return directory_.path(); }
  // As the test itself calls: the faults hit it as well.
  std::shared_ptr<Channel> ChannelTo(const std::string& address) {
    return transport_->Connect(address, pb::ROLE_PSSERVER);
  }
  std::string WorkerAddress(int index) const { return workers_.at(index)->address(); }
  std::string ServerAddress(int index) const { return servers_.at(index)->address(); }

  absl::Status StartWorker(int index) {
    WorkerNodeOptions options;
    options.coordinator = coordinator_->address();
    options.listen = "memory:0";
    options.index = index;
    options.worker = worker_;
    options.worker.cache_dir = absl::StrCat(directory(), "/cache-", index);
    options.worker.telemetry = &telemetry_;
    MU_ASSIGN_OR_RETURN(workers_[index], WorkerNode::Listen(transport_.get(), options));
    return workers_[index]->Register();
  }
  // As SIGTERM does.
  absl::Status DrainWorker(int index) {
    const auto worker = std::move(workers_.extract(index).mapped());
    worker->Drain(absl::Seconds(5));
    return worker->Leave("asked to stop", absl::Seconds(5));
  }

  // Takes the place of the one that is there, whose state is lost.
  absl::Status StartServer(int index) {
    PsNodeOptions options;
    options.coordinator = coordinator_->address();
    options.listen = "memory:0";
    options.index = index;
    options.telemetry = &telemetry_;
    MU_ASSIGN_OR_RETURN(auto server, PsNode::Listen(transport_.get(), options));
    if (servers_.contains(index)) former_servers_[index] = std::move(servers_[index]);
    servers_[index] = std::move(server);
    return servers_[index]->Register();
  }

 private:
  MemoryCluster(TempDirectory directory, std::shared_ptr<FaultPlan> faults,
                const WorkerOptions& worker)
      : directory_(std::move(directory)), faults_(std::move(faults)), worker_(worker) {}

  TempDirectory directory_;
  const std::shared_ptr<FaultPlan> faults_;
  const WorkerOptions worker_;
  const std::shared_ptr<Transport> network_ = NewMemoryTransport();
  // The daemons' and the test's
  const std::unique_ptr<Transport> transport_ = NewFaultyTransport(network_, faults_);
  Telemetry telemetry_;
  std::unique_ptr<Coordinator> coordinator_;
  std::map<int, std::unique_ptr<PsNode>> servers_, former_servers_;
  std::map<int, std::unique_ptr<WorkerNode>> workers_;
};

}  // namespace mu::testing
