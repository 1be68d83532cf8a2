// The daemon of a parameter server. Exit codes: 0 asked to stop, 2 bad flags, 4 infrastructure
// (port in use, coordinator out of reach).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/client/daemon.h"
#include "common/obs/log.h"
#include "common/rpc/transport.h"
#include "psserver/node.h"

namespace {

// The last word of the process: on standard error, where whoever started it looks, and in the log
// if that is elsewhere.
int Fail(int code, const absl::Status& status, bool log = false) {
  std::fprintf(stderr, "psserver: %s\n", std::string(status.message()).c_str());
  if (log) MU_LOG(ERROR, "{}", status);
  return code;
}

int CodeOf(const absl::Status& status) {
  return mu::KindOf(status) == muster::ERROR_MACHINE ? mu::kExitInfrastructure : mu::kExitBadInput;
}

int Run(const mu::DaemonFlags& flags, double save_memory_mb) {
  if (absl::Status status = mu::CheckDaemonFlags(flags); !status.ok())
    return Fail(mu::kExitBadInput, status);
  auto process = mu::DaemonProcess::Start(flags);
  if (!process.ok()) return Fail(mu::kExitInfrastructure, process.status());
  mu::LogOptions log;
  log.role = "psserver";
  log.file = flags.log_file;
  log.to_stderr = flags.log_file.empty();
  if (absl::Status status = mu::InitLogging(log); !status.ok())
    return Fail(mu::kExitBadInput, status);

  const bool logged = !flags.log_file.empty();
  const auto transport = mu::NewGrpcTransport();
  mu::PsNodeOptions options;
  options.coordinator = flags.coordinator;
  options.listen = flags.listen;
  options.advertise = [&flags](const std::string& bound) {
    return mu::AdvertisedAddress(flags, bound);
  };
  options.index = flags.index;
  options.orphan_timeout = flags.orphan_timeout();
  options.most_copies = static_cast<size_t>(save_memory_mb * (1 << 20));
  options.on_lost = [&process](absl::Status status) { (*process)->RequestStop(std::move(status)); };
  auto node = mu::PsNode::Listen(transport.get(), options);
  if (!node.ok()) return Fail(mu::kExitInfrastructure, node.status(), logged);
  if (absl::Status status = (*process)->AnnounceReady((*node)->address()); !status.ok()) {
    return Fail(mu::kExitInfrastructure, status, logged);
  }
  MU_LOG(INFO, "listening on {}", (*node)->address());

  (*process)->OnStop([&node] { (*node)->RequestStop(); });
  const absl::Status registered = (*node)->Register();
  (*process)->OnStop(nullptr);
  if (!registered.ok()) {
    if (!(*process)->stopping()) return Fail(CodeOf(registered), registered, logged);
    // The coordinator may have registered us all the same.
    (*node)->Leave("asked to stop", absl::Seconds(1)).IgnoreError();
    return mu::kExitOk;
  }
  const absl::Status end = (*process)->WaitForStop();
  if (!end.ok()) return Fail(mu::kExitInfrastructure, end, logged);
  MU_LOG(INFO, "asked to stop: serves until the coordinator lets it go, for {} s at most",
         flags.drain_timeout_seconds);
  const absl::Status left = (*node)->Drain("SIGTERM", flags.drain_timeout());
  MU_LOG(INFO, "stopped ({})",
         left.ok() ? "the coordinator let it go" : std::string(left.message()));
  return mu::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Muster's parameter server: holds shards of a job's variables and embedding tables.",
               "psserver");
  mu::DaemonFlags flags;
  mu::AddDaemonFlags(&app, &flags);
  double save_memory_mb = 0;
  app.add_option("--save_memory", save_memory_mb,
                 "MB for copies of what changes while a checkpoint is written; pushes that need "
                 "more wait for the writer "
                 "(default: a quarter of what the server holds)")
      ->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? mu::kExitOk : mu::kExitBadInput;
  }
  return Run(flags, save_memory_mb);
}
