// The worker daemon: one image for every job. See docs/architecture.md.
#include "worker/daemon.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/client/daemon_log.h"
#include "common/client/health_command.h"
#include "common/client/node_monitor.h"
#include "common/exec/memory_budget.h"
#include "common/obs/log.h"
#include "common/process/daemon.h"
#include "common/process/flags.h"
#include "common/rpc/metered_transport.h"
#include "worker/node.h"

namespace mu {
namespace {

// Ends the process, so that whoever started it starts it again. Where the kernel does not let go of
// it (a local disk that hangs), its heartbeats at least end, and it counts as silent.
void EndStuck(const std::string& doing, absl::Duration timeout) {
  // The log may be on the disk that does not answer.
  auto* const logged = new Notification;
  std::thread([logged, timeout, doing] {
    MU_LOG(ERROR, "{} for {} now; this process ends (--stuck_timeout)", doing,
           absl::FormatDuration(timeout));
    FlushLog();
    logged->Notify();
  }).detach();
  logged->WaitFor(absl::Seconds(1));
  std::_Exit(kExitInfrastructure);
}

int Report(const absl::Status& status, int code) {
  MU_LOG(ERROR, "{}", status.message());
  FlushLog();
  return code;
}

// A refusal of the coordinator is for good; one that cannot be reached may come back.
int ExitCodeOf(const absl::Status& status) {
  const pb::ErrorKind kind = KindOf(status);
  return kind == pb::ERROR_OTHER_JOB || kind == pb::ERROR_USER ? kExitBadInput
                                                               : kExitInfrastructure;
}

// For a process that has drained, or has taken its leave, before it ends by itself.
constexpr absl::Duration kLeaveGrace = absl::Seconds(5), kEndGrace = absl::Seconds(2);

int Run(const DaemonFlags& flags, WorkerNodeOptions options, const MakeTransport& make_transport) {
  auto process = DaemonProcess::Start(flags);
  if (!process.ok()) return Report(process.status(), kExitInfrastructure);
  DaemonProcess& daemon = **process;

  const auto transport = NewMeteredTransport(make_transport({.tls = flags.tls}));
  auto monitor = MonitorOf(flags);
  if (!monitor.ok()) return Report(monitor.status(), kExitInfrastructure);
  if (*monitor != nullptr)
    options.http = AdvertisedHttp(flags, (*monitor)->address(), (*monitor)->secure());
  options.coordinator = flags.coordinator;
  options.listen = flags.listen;
  options.advertise = [&flags](const std::string& bound) {
    return AdvertisedAddress(flags, bound);
  };
  options.index = flags.index;
  options.orphan_timeout = flags.orphan_timeout();
  options.on_stuck = [timeout = options.stuck_timeout](const std::string& doing) {
    EndStuck(doing, timeout);
  };
  options.on_lost = [&daemon](absl::Status status) { daemon.RequestStop(std::move(status)); };
  options.on_registered = [](const pb::RegisterReply& reply) {
    SetLogIdentity({reply.index(), reply.job_name(), reply.epoch()});
  };
  std::atomic<bool> dismissed = false;
  options.on_dismissed = [&] {
    dismissed = true;
    daemon.RequestStop(absl::OkStatus());
  };
  auto listening = WorkerNode::Listen(transport.get(), std::move(options));
  if (!listening.ok()) return Report(listening.status(), kExitInfrastructure);
  WorkerNode& node = **listening;
  const WatchedNode watched(monitor->get(), &node);

  daemon.OnStop([&node] { node.RequestStop(); });
  if (absl::Status status = daemon.AnnounceReady(node.address()); !status.ok()) {
    return Report(status, kExitInfrastructure);
  }
  if (absl::Status status = node.Register(); !status.ok()) daemon.RequestStop(std::move(status));
  daemon.OnStop(nullptr);  // heartbeats go on until this worker has left
  const absl::Status stopped = daemon.WaitForStop();
  const auto code = [&] {
    if (!stopped.ok()) return ExitCodeOf(stopped);
    return dismissed ? kExitOk : flags.drained_exit_code;
  };
  // A step may compute for long, or read from a disk that never answers.
  EndWithin(flags.drain_timeout() + kLeaveGrace + kEndGrace, code());
  node.Drain(flags.drain_timeout());
  if (!stopped.ok()) {
    EndWithin(kEndGrace, Report(stopped, code()));
    node.Stop();
    return code();
  }
  if (absl::Status left = node.Leave("asked to stop", flags.drain_timeout()); !left.ok())
    MU_LOG(WARN, "could not say goodbye to the coordinator: {}", left.message());
  MU_LOG(INFO, "ends, since {}", dismissed ? "the job is over" : "it was asked to");
  FlushLog();
  EndWithin(kEndGrace, code());
  return code();
}

}  // namespace

int WorkerMain(int argc, char** argv, const MakeTransport& make_transport) {
  if (IsHealthCommand(argc, argv)) return HealthMain(argc, argv, pb::ROLE_WORKER, make_transport);
  DaemonFlags flags;
  WorkerNodeOptions node_options;
  WorkerOptions& options = node_options.worker;
  CLI::App app("Muster worker: runs the functions that the coordinator installs on it");
  AddDaemonFlags(&app, &flags);
  options.cache_dir = "/tmp/muster-cache";
  app.add_option("--cache_dir", options.cache_dir,
                 "Directory for unpacked copies of compressed files")
      ->capture_default_str();
  app.add_option("--cache_bytes", options.cache_bytes, "Bytes that those copies may take")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads that read data ahead")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--slow_down", options.slow_down,
                 "For tests: every step takes this many times as long (of 0.2 s at most)")
      ->capture_default_str();
  double stuck_timeout_seconds = 1800;
  app.add_option("--stuck_timeout", stuck_timeout_seconds,
                 "Seconds for which a step may read data or compute without an end; then this "
                 "process ends with exit code 4, and its functions go to others. 0: for ever")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  double memory_limit_mb = 0;
  app.add_option("--memory_limit", memory_limit_mb,
                 "MB that the tensors of a job's functions may take on this worker, all together, "
                 "and the records of one lease; beyond it training fails with an error, instead of "
                 "the kernel ending the worker (default: no limit)")
      ->check(CLI::NonNegativeNumber);
  FinishFlags(&app, "worker");
  try {
    ParseFlags(&app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitBadInput;
  }
  const std::string name = flags.index >= 0 ? absl::StrCat("worker ", flags.index) : "worker";
  absl::Status wrong = InitDaemonLog(flags, name);
  if (wrong.ok()) wrong = CheckDaemonFlags(flags, pb::ROLE_WORKER);
  if (!wrong.ok()) {
    TellEnd(flags, pb::ROLE_WORKER, wrong);
    return kExitBadInput;
  }
  node_options.stuck_timeout = absl::Seconds(stuck_timeout_seconds);
  options.most_lease_bytes = static_cast<size_t>(memory_limit_mb * (1 << 20));
  MemoryBudget::Process().SetLimit(options.most_lease_bytes);
  return Run(flags, std::move(node_options), make_transport);
}

}  // namespace mu
