// The worker daemon: one image for every job. See docs/architecture.md.
#include "worker/daemon.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/client/membership.h"
#include "common/obs/log.h"
#include "common/process/daemon.h"
#include "worker/worker_server.h"

namespace mu {
namespace {

// At most, and at most --drain_timeout each.
// For the running step's reads from servers; its updates are always seen through.
constexpr absl::Duration kDrainPatience = absl::Seconds(5);
constexpr absl::Duration kLeaveTimeout = absl::Seconds(5);

// Ends the process when a step stands still for `timeout`, so that whoever started it starts it
// again. Where the kernel does not let go of it (a local disk that hangs), its heartbeats at least
// end, and it counts as silent.
class StuckWatcher {
 public:
  StuckWatcher(const WorkerServer* worker, absl::Duration timeout) : worker_(worker) {
    if (timeout > absl::ZeroDuration()) thread_ = std::thread([this, timeout] { Watch(timeout); });
  }
  ~StuckWatcher() {
    stop_.Notify();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Watch(absl::Duration timeout) {
    constexpr int kLooks = 20;
    StuckDetector detector(kLooks);
    while (!stop_.WaitFor(timeout / kLooks)) {
      const StepWatch::Place place = worker_->place();
      if (!detector.Look(place)) continue;
      // The log may be on the disk that does not answer.
      auto* const logged = new Notification;
      std::thread([logged, timeout, doing = place.doing] {
        MU_LOG(ERROR, "{} for {} now; this process ends (--stuck_timeout)", doing,
               absl::FormatDuration(timeout));
        FlushLog();
        logged->Notify();
      }).detach();
      logged->WaitFor(absl::Seconds(1));
      std::_Exit(kExitInfrastructure);
    }
  }

  const WorkerServer* const worker_;
  Notification stop_;
  std::thread thread_;
};

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

using MakeTransport = std::function<std::unique_ptr<Transport>()>;

int Run(const DaemonFlags& flags, WorkerOptions options, absl::Duration stuck_timeout,
        const MakeTransport& make_transport) {
  auto process = DaemonProcess::Start(flags);
  if (!process.ok()) return Report(process.status(), kExitInfrastructure);
  DaemonProcess& daemon = **process;

  const auto transport = make_transport();
  WorkerServer worker(options, transport.get());
  const StuckWatcher watcher(&worker, stuck_timeout);
  MethodTable methods;
  worker.AddMethods(&methods);
  auto server = transport->Listen(flags.listen, std::move(methods));
  if (!server.ok()) return Report(server.status(), kExitInfrastructure);
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

int WorkerMain(int argc, char** argv, const MakeTransport& make_transport) {
  DaemonFlags flags;
  WorkerOptions options;
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
                 "For tests: every step takes this many times as long")
      ->capture_default_str();
  double stuck_timeout_seconds = 1800;
  app.add_option("--stuck_timeout", stuck_timeout_seconds,
                 "Seconds for which a step may read data or compute without an end; then this "
                 "process ends with exit code 4, and its functions go to others. 0: for ever")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitBadInput;
  }
  if (absl::Status status = CheckDaemonFlags(flags); !status.ok()) {
    std::fprintf(stderr, "worker: %s\n", std::string(status.message()).c_str());
    return kExitBadInput;
  }
  options.registers = true;
  if (flags.index >= 0) options.index = static_cast<uint32_t>(flags.index);
  LogOptions log;
  log.role = flags.index >= 0 ? absl::StrCat("worker ", flags.index) : "worker";
  log.file = flags.log_file;
  log.to_stderr = flags.log_file.empty();
  if (absl::Status status = InitLogging(log); !status.ok()) {
    std::fprintf(stderr, "worker: %s\n", std::string(status.message()).c_str());
    return kExitBadInput;
  }
  return Run(flags, std::move(options), absl::Seconds(stuck_timeout_seconds), make_transport);
}

}  // namespace mu
