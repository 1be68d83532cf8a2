#include "absl/time/clock.h"
#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "common/obs/log.h"
#include "common/process/tls_flags.h"
#include "coordinator/launch/chaos.h"
#include "coordinator/launch/cluster_options.h"
#include "coordinator/launch/launch.h"
#include "coordinator/launch/local_daemons.h"
#include "coordinator/launch/run_folder.h"
#include "coordinator/launch/send_home.h"
#include "coordinator/launch/stop_watcher.h"

namespace mu {
namespace {

// What a local coordinator owns beside itself. The chaos ends first: it looks at the processes.
struct LocalEnvironment {
  std::unique_ptr<LocalDaemons> processes;
  std::unique_ptr<Chaos> chaos;
};

absl::Status WaitForCluster(Coordinator& coordinator, const ClusterOptions& options) {
  const StopWatcher watcher(&coordinator.runtime(), options.stop);
  return coordinator.WaitForCluster(options.workers);
}

// The coordinator of a cluster that others start, before anybody has registered.
absl::StatusOr<std::unique_ptr<Coordinator>> Listen(const ClusterOptions& options) {
  if (options.listen.empty()) {
    return absl::InvalidArgumentError(
        "a cluster's coordinator needs an address for its daemons to register at (listen)");
  }
  MU_RETURN_IF_ERROR(
      CheckListening(options.listen, options.tls, options.insecure, pb::ROLE_COORDINATOR));
  return CreateCoordinator(options, NewGrpcTransport({.tls = options.tls}));
}

// Those that are members: a fault that strikes one that nobody knows yet tries nothing.
std::vector<Chaos::Target> TargetsOf(const LocalDaemons& daemons, const Runtime& runtime) {
  std::vector<Chaos::Target> targets;
  for (const auto& process : daemons.Processes()) {
    if (!runtime.IsMember(process.pid)) continue;
    targets.push_back({process.name, process.pid, process.name.rfind("worker", 0) == 0});
  }
  return targets;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Local(ClusterOptions options) {
  if (options.listen.empty()) options.listen = "127.0.0.1:0";
  MU_RETURN_IF_ERROR(CheckCallsInTheClear(options, "Local"));
  std::optional<ChaosPlan> chaos;
  if (!options.chaos.empty()) {
    MU_ASSIGN_OR_RETURN(chaos, ChaosPlan::Parse(options.chaos));
  }
  if (options.job_dir.empty()) {
    MU_ASSIGN_OR_RETURN(options.job_dir, MakeRunFolder("runs", options.name, absl::Now()));
  }
  MU_ASSIGN_OR_RETURN(options.job_dir, AbsolutePath(options.job_dir));
  MU_RETURN_IF_ERROR(MakeDirectories(options.job_dir + "/logs"));
  if (options.binary_dir.empty()) options.binary_dir = FolderOfThisProgram();
  MU_ASSIGN_OR_RETURN(std::unique_ptr<Coordinator> coordinator,
                      CreateCoordinator(options, NewGrpcTransport()));
  LocalDaemonsOptions daemons;
  daemons.binary_dir = options.binary_dir;
  daemons.workers = options.workers;
  daemons.ps = options.ps;
  daemons.coordinator = coordinator->address();
  daemons.log_dir = options.job_dir + "/logs";
  daemons.cache_dir = options.job_dir + "/cache";
  daemons.http = !options.http.empty();
  daemons.log_format = options.log_format;
  daemons.restart_workers = options.restart_workers;
  Runtime* const runtime = &coordinator->runtime();
  daemons.died = [runtime](int64_t pid, const std::string& message) {
    runtime->DaemonDied(pid, message);
  };
  daemons.is_member = [runtime](int64_t pid) { return runtime->IsMember(pid); };
  daemons.wake_up = options.member_timeout / 2;
  daemons.cannot_start = [runtime](absl::Status error) {
    pb::ErrorDetail detail;
    detail.set_kind(pb::ERROR_MACHINE);
    runtime->Fail(WithDetail(std::move(error), detail));
  };
  const auto environment = std::make_shared<LocalEnvironment>();
  MU_ASSIGN_OR_RETURN(environment->processes, LocalDaemons::Start(std::move(daemons)));
  LocalDaemons* const processes = environment->processes.get();
  runtime->SetOnSilent([weak = std::weak_ptr<LocalEnvironment>(environment)](const Member& member) {
    if (const auto alive = weak.lock()) alive->processes->Silent(member.pid);
  });
  for (const auto& process : processes->Processes())
    MU_LOG(INFO, "started {} (pid {})", process.name, process.pid);
  coordinator->OwnEnvironment(environment);
  MU_RETURN_IF_ERROR(WaitForCluster(*coordinator, options));
  if (chaos)
    environment->chaos = std::make_unique<Chaos>(
        *std::move(chaos), [processes, runtime] { return TargetsOf(*processes, *runtime); },
        [processes](pid_t pid, int signal) { return processes->Signal(pid, signal); });
  return coordinator;
}

absl::StatusOr<std::unique_ptr<Coordinator>> Connect(ClusterOptions options) {
  MU_ASSIGN_OR_RETURN(std::unique_ptr<Coordinator> coordinator, Listen(options));
  MU_RETURN_IF_ERROR(WaitForCluster(*coordinator, options));
  return coordinator;
}

absl::Status SendHome(ClusterOptions options, absl::Duration patience) {
  options.start_timeout = patience;
  MU_ASSIGN_OR_RETURN(std::unique_ptr<Coordinator> coordinator, Listen(options));
  const absl::Status all = WaitForCluster(*coordinator, options);
  if (!all.ok() && !absl::IsDeadlineExceeded(all)) return all;
  coordinator->Dismiss();
  return absl::OkStatus();
}

}  // namespace mu
