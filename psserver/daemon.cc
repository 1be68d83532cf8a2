// The daemon of a parameter server. Exit codes: 0 asked to stop, 2 bad flags, 4 infrastructure
// (port in use, coordinator out of reach).
#include "psserver/daemon.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/client/daemon_log.h"
#include "common/client/health_command.h"
#include "common/client/node_monitor.h"
#include "common/obs/log.h"
#include "common/process/daemon.h"
#include "common/process/flags.h"
#include "common/rpc/metered_transport.h"
#include "psserver/node.h"

namespace mu {
namespace {

int CodeOf(const absl::Status& status) {
  return KindOf(status) == pb::ERROR_MACHINE ? kExitInfrastructure : kExitBadInput;
}

// For the end itself, once nothing is waited for any more.
constexpr absl::Duration kEndGrace = absl::Seconds(2);

size_t Bytes(double megabytes) { return static_cast<size_t>(megabytes * (1 << 20)); }

struct MemoryFlags {
  double save_mb = 0;
  double applied_mb = 896;
  double values_mb = 0;
};

int Run(const DaemonFlags& flags, const MemoryFlags& memory, const MakeTransport& make_transport) {
  const auto fail = [&flags](int code, const absl::Status& status) {
    TellEnd(flags, pb::ROLE_PSSERVER, status);
    return code;
  };
  if (absl::Status status = InitDaemonLog(flags, "psserver"); !status.ok())
    return fail(kExitBadInput, status);
  if (absl::Status status = CheckDaemonFlags(flags, pb::ROLE_PSSERVER); !status.ok())
    return fail(kExitBadInput, status);
  auto process = DaemonProcess::Start(flags);
  if (!process.ok()) return fail(kExitInfrastructure, process.status());

  const auto transport = NewMeteredTransport(make_transport({.tls = flags.tls}));
  auto monitor = MonitorOf(flags);
  if (!monitor.ok()) return fail(kExitInfrastructure, monitor.status());
  PsNodeOptions options;
  if (*monitor != nullptr)
    options.http = AdvertisedHttp(flags, (*monitor)->address(), (*monitor)->secure());
  options.coordinator = flags.coordinator;
  options.listen = flags.listen;
  options.advertise = [&flags](const std::string& bound) {
    return AdvertisedAddress(flags, bound);
  };
  options.index = flags.index;
  options.orphan_timeout = flags.orphan_timeout();
  options.most_copies = Bytes(memory.save_mb);
  options.most_applied = Bytes(memory.applied_mb);
  options.most_values = Bytes(memory.values_mb);
  options.on_lost = [&process](absl::Status status) { (*process)->RequestStop(std::move(status)); };
  options.on_registered = [](const pb::RegisterReply& reply) {
    SetLogIdentity({reply.index(), reply.job_name(), reply.epoch()});
  };
  std::atomic<bool> dismissed = false;
  options.on_dismissed = [&] {
    dismissed = true;
    (*process)->RequestStop(absl::OkStatus());
  };
  auto node = PsNode::Listen(transport.get(), options);
  if (!node.ok()) return fail(kExitInfrastructure, node.status());
  const WatchedNode watched(monitor->get(), node->get());
  if (absl::Status status = (*process)->AnnounceReady((*node)->address()); !status.ok()) {
    return fail(kExitInfrastructure, status);
  }
  MU_LOG(INFO, "listening on {}", (*node)->address());

  (*process)->OnStop([&node] { (*node)->RequestStop(); });
  const absl::Status registered = (*node)->Register();
  (*process)->OnStop(nullptr);
  if (!registered.ok()) {
    if (!(*process)->stopping()) return fail(CodeOf(registered), registered);
    // The coordinator may have registered us all the same.
    (*node)->Leave("asked to stop", absl::Seconds(1)).IgnoreError();
    return flags.drained_exit_code;
  }
  const absl::Status end = (*process)->WaitForStop();
  const int ended_well = dismissed ? kExitOk : flags.drained_exit_code;
  // A save or a restore may hang in the disk, and never come back.
  EndWithin(end.ok() ? flags.drain_timeout() + kEndGrace : kEndGrace,
            end.ok() ? ended_well : kExitInfrastructure);
  if (!end.ok()) return fail(kExitInfrastructure, end);
  MU_LOG(INFO, "asked to stop: serves until the coordinator lets it go, for {} s at most",
         flags.drain_timeout_seconds);
  const absl::Status left = (*node)->Drain("SIGTERM", flags.drain_timeout());
  MU_LOG(INFO, "stopped ({})",
         left.ok() ? "the coordinator let it go" : std::string(left.message()));
  return ended_well;
}

}  // namespace

int PsServerMain(int argc, char** argv, const MakeTransport& make_transport) {
  if (IsHealthCommand(argc, argv)) return HealthMain(argc, argv, pb::ROLE_PSSERVER, make_transport);
  CLI::App app("Muster's parameter server: holds shards of a job's variables and embedding tables.",
               "psserver");
  DaemonFlags flags;
  AddDaemonFlags(&app, &flags);
  MemoryFlags memory;
  app.add_option("--save_memory", memory.save_mb,
                 "MB for copies of what changes while a checkpoint is written; pushes that need "
                 "more wait for the writer "
                 "(default: a quarter of what the server holds)")
      ->check(CLI::NonNegativeNumber);
  app.add_option(
         "--applied_memory", memory.applied_mb,
         "MB for remembering which updates were applied since the last two checkpoints; when "
         "90% is in use, the coordinator starts no new function that changes parameters "
         "until checkpoints succeed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option(
         "--memory_limit", memory.values_mb,
         "MB of values and optimizer slots (of tables, whole pages of 4 KB) that a job may have "
         "on this server, with the values of checkpoints that it evaluates while it trains, which "
         "go first; beyond it training fails with an error, instead of the kernel ending the "
         "server (default: no limit)")
      ->check(CLI::NonNegativeNumber);
  FinishFlags(&app, "psserver");
  try {
    ParseFlags(&app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitBadInput;
  }
  return Run(flags, memory, make_transport);
}

}  // namespace mu
