// The worker daemon: one image for every job. See docs/architecture.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/client/daemon.h"
#include "common/client/membership.h"
#include "common/obs/log.h"
#include "common/rpc/transport.h"
#include "worker/worker_server.h"

namespace mu {
namespace {

// At most, and at most --drain_timeout each.
// For the running step's reads from servers; its updates are always seen through.
constexpr absl::Duration kDrainPatience = absl::Seconds(5);
constexpr absl::Duration kLeaveTimeout = absl::Seconds(5);

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

int Run(const DaemonFlags& flags, WorkerOptions options) {
  auto process = DaemonProcess::Start(flags);
  if (!process.ok()) return Report(process.status(), kExitInfrastructure);
  DaemonProcess& daemon = **process;

  auto transport = NewGrpcTransport();
  WorkerServer worker(options, transport.get());
  MethodTable methods;
  worker.AddMethods(&methods);
  auto server = transport->Listen(flags.listen, std::move(methods));
  if (!server.ok()) return Report(server.status(), kExitBadInput);
  const std::string address = AdvertisedAddress(flags, (*server)->address());

  MembershipOptions membership;
  membership.role = pb::ROLE_WORKER;
  membership.address = address;
  membership.index = flags.index;
  membership.orphan_timeout = flags.orphan_timeout();
  membership.on_registered = [&](const pb::RegisterReply& reply, int64_t) {
    const absl::Status status = worker.Registered(reply.job(), reply.epoch(), reply.index());
    if (!status.ok()) return daemon.RequestStop(status);
    MU_LOG(INFO, "worker {} serves at {} (epoch {})", reply.index(), address, reply.epoch());
  };
  membership.on_lost = [&](absl::Status status) { daemon.RequestStop(std::move(status)); };
  MembershipClient member(transport->Connect(flags.coordinator), membership);
  daemon.OnStop([&] { member.RequestStop(); });

  if (absl::Status status = daemon.AnnounceReady(address); !status.ok()) {
    return Report(status, kExitInfrastructure);
  }
  if (absl::Status status = member.Register(); !status.ok()) daemon.RequestStop(std::move(status));
  daemon.OnStop(nullptr);  // heartbeats go on until this worker has left
  const absl::Status stopped = daemon.WaitForStop();
  // The running step is finished and the rest handed back before the coordinator hears that this
  // worker goes; it answers when it has all results.
  worker.Drain(std::min(kDrainPatience, flags.drain_timeout()));
  const absl::Status left =
      stopped.ok() ? member.Leave("asked to stop", std::min(kLeaveTimeout, flags.drain_timeout()))
                   : absl::OkStatus();
  if (!left.ok()) MU_LOG(WARN, "could not say goodbye to the coordinator: {}", left.message());
  (*server)->Shutdown();
  if (!stopped.ok()) return Report(stopped, ExitCodeOf(stopped));
  MU_LOG(INFO, "ends as asked");
  return kExitOk;
}

}  // namespace
}  // namespace mu

int main(int argc, char** argv) {
  mu::DaemonFlags flags;
  mu::WorkerOptions options;
  CLI::App app("Muster worker: runs the functions that the coordinator installs on it");
  mu::AddDaemonFlags(&app, &flags);
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
                 "For tests: every step takes this many times as long")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? mu::kExitOk : mu::kExitBadInput;
  }
  if (absl::Status status = mu::CheckDaemonFlags(flags); !status.ok()) {
    std::fprintf(stderr, "worker: %s\n", std::string(status.message()).c_str());
    return mu::kExitBadInput;
  }
  options.registers = true;
  if (flags.index >= 0) options.index = static_cast<uint32_t>(flags.index);
  mu::LogOptions log;
  log.role = flags.index >= 0 ? absl::StrCat("worker ", flags.index) : "worker";
  log.file = flags.log_file;
  log.to_stderr = flags.log_file.empty();
  if (absl::Status status = mu::InitLogging(log); !status.ok()) {
    std::fprintf(stderr, "worker: %s\n", std::string(status.message()).c_str());
    return mu::kExitBadInput;
  }
  return mu::Run(flags, std::move(options));
}
