// A whole cluster inside one process: real services over real gRPC on loopback, without processes
// to start. The one place where the coordinator's code includes the other roles.
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/client/membership.h"
#include "common/env/file.h"
#include "common/obs/telemetry.h"
#include "coordinator/launch/cluster_options.h"
#include "coordinator/launch/launch.h"
#include "psserver/server.h"
#include "worker/worker_server.h"

namespace mu {
namespace {

// A daemon without its process. Members end in reverse order: membership, then calls, then the
// role.
struct InProcessDaemon {
  Telemetry telemetry;
  std::unique_ptr<PsServer> ps;
  std::unique_ptr<WorkerServer> worker;
  std::unique_ptr<RpcServer> rpc;
  std::unique_ptr<MembershipClient> membership;
};

struct InProcessCluster {
  std::unique_ptr<Transport> transport;
  std::vector<std::unique_ptr<InProcessDaemon>> daemons;
  std::unique_ptr<TempDirectory> cache;
};

absl::Status StartDaemon(InProcessCluster& cluster, const std::string& coordinator, pb::Role role,
                         int index) {
  auto daemon = std::make_unique<InProcessDaemon>();
  InProcessDaemon* const d = daemon.get();
  MethodTable methods;
  if (role == pb::ROLE_PSSERVER) {
    PsServerOptions options;
    options.leased = true;
    options.registers = true;
    options.telemetry = &d->telemetry;
    d->ps = std::make_unique<PsServer>(options);
    d->ps->RegisterMethods(&methods);
  } else {
    WorkerOptions options;
    options.index = static_cast<uint32_t>(index);
    options.registers = true;
    options.cache_dir = absl::StrCat(cluster.cache->path(), "/worker-", index);
    options.telemetry = &d->telemetry;
    d->worker = std::make_unique<WorkerServer>(options, cluster.transport.get());
    d->worker->AddMethods(&methods);
  }
  MU_ASSIGN_OR_RETURN(d->rpc, cluster.transport->Listen("127.0.0.1:0", std::move(methods)));
  MembershipOptions membership;
  membership.role = role;
  membership.address = d->rpc->address();
  membership.index = index;
  membership.on_registered = [d](const pb::RegisterReply& reply, int64_t sent_ns) {
    if (d->ps != nullptr) {
      d->ps->SetIdentity(reply.job(), reply.epoch(), reply.index()).IgnoreError();
      d->ps->RenewLease(sent_ns, absl::Milliseconds(reply.lease_ms()), reply.generation());
    } else {
      d->worker->Registered(reply.job(), reply.epoch(), reply.index()).IgnoreError();
    }
  };
  membership.on_heartbeat = [d](const pb::HeartbeatReply& reply, int64_t sent_ns) {
    if (d->ps == nullptr) return;
    d->ps->RenewLease(sent_ns, absl::Milliseconds(reply.lease_ms()), reply.generation());
    d->ps->RaiseLowWater(reply.low_water());
  };
  d->membership =
      std::make_unique<MembershipClient>(cluster.transport->Connect(coordinator), membership);
  cluster.daemons.push_back(std::move(daemon));
  return d->membership->Register();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> InProcess(ClusterOptions options) {
  if (options.listen.empty()) options.listen = "127.0.0.1:0";
  MU_ASSIGN_OR_RETURN(std::unique_ptr<Coordinator> coordinator,
                      CreateCoordinator(options, NewGrpcTransport()));
  auto cluster = std::make_shared<InProcessCluster>();
  cluster->transport = NewGrpcTransport();
  MU_ASSIGN_OR_RETURN(TempDirectory cache, TempDirectory::Create("muster-in-process"));
  cluster->cache = std::make_unique<TempDirectory>(std::move(cache));
  for (int i = 0; i < options.ps; ++i) {
    MU_RETURN_IF_ERROR(StartDaemon(*cluster, coordinator->address(), pb::ROLE_PSSERVER, i));
  }
  for (int i = 0; i < options.workers; ++i) {
    MU_RETURN_IF_ERROR(StartDaemon(*cluster, coordinator->address(), pb::ROLE_WORKER, i));
  }
  coordinator->OwnEnvironment(std::move(cluster));
  MU_RETURN_IF_ERROR(coordinator->WaitForCluster(options.workers));
  return coordinator;
}

}  // namespace mu
