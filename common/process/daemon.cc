#include "common/process/daemon.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/env/file.h"
#include "common/env/host_name.h"
#include "common/env/host_port.h"
#include "common/env/subprocess.h"
#include "common/process/descriptor_limit.h"
#include "common/process/fast_bins.h"
#include "common/process/observe_flags.h"
#include "common/process/tls_flags.h"

namespace mu {
namespace {

// Also of what has no port: "fd00::5" is one host.
std::string HostOf(const std::string& address) {
  if (const auto at = SplitHostPort(address); at.ok()) return at->host;
  const bool brackets = address.size() > 2 && address.front() == '[' && address.back() == ']';
  return brackets ? address.substr(1, address.size() - 2) : address;
}

bool IsWildcard(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

// The coordinator is told of addresses in strings of protobuf.
bool IsText(const std::string& address) { return ValidUtf8(address) == address; }

absl::Status CheckAdvertise(const std::string& advertise) {
  const std::string host = HostOf(advertise);
  in6_addr six;
  const bool names_a_host = host.find(':') == std::string::npos ||
                            inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &six) == 1;
  if (names_a_host && IsText(advertise)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--advertise=", Printable(advertise),
      " is no address; write HOST or HOST:PORT, for example 10.0.0.1 or [fd00::1]:7000"));
}

}  // namespace

absl::Status CheckAddress(const char* flag, const std::string& address) {
  if (SplitHostPort(address).ok() && IsText(address)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, "=", Printable(address),
                   " is no address; write HOST:PORT, for example 127.0.0.1:7000 or [::1]:7000"));
}

void AddDaemonFlags(CLI::App* app, DaemonFlags* flags) {
  app->add_option("--coordinator", flags->coordinator, "Address of the coordinator, HOST:PORT")
      ->required();
  app->add_option("--listen", flags->listen, "Address to listen on; port 0 takes a free one")
      ->capture_default_str();
  app->add_option(
      "--advertise", flags->advertise,
      "HOST or HOST:PORT by which others reach this daemon (default: what --listen bound)");
  app->add_option("--index", flags->index, "Index wished for in the cluster; -1 takes any")
      ->capture_default_str();
  app->add_option("--parent_pipe_fd", flags->parent_pipe_fd,
                  "Ends when this pipe's other end closes (for launchers)");
  app->add_option("--ready_fd", flags->ready_fd,
                  "Writes its address here when ready (for launchers)");
  app->add_flag("--die_with_parent", flags->die_with_parent, "Ends when the parent process ends");
  app->add_option("--log_file", flags->log_file, "Log to this file instead of standard error");
  AddLogFormatFlag(app, &flags->log_format);
  AddHttpFlag(app, &flags->http);
  AddTlsFlags(app, &flags->tls);
  app->add_flag("--insecure", flags->insecure, "Allows to listen off loopback without TLS");
  app->add_option(
         "--orphan_timeout", flags->orphan_timeout_seconds,
         "Seconds without a coordinator, or a newer one in its place, after which this daemon ends")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app->add_option("--drain_timeout", flags->drain_timeout_seconds,
                  "Seconds after SIGTERM in which the coordinator may let this daemon go; then it "
                  "ends all the same (a worker, when its running step is done: 5 s at most)")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app->add_option("--drained_exit_code", flags->drained_exit_code,
                  "Exit code of a daemon that SIGTERM has ended before the job was over (for "
                  "managers that take 0 for the end of the job, such as a Kubernetes Job: 143)")
      ->capture_default_str()
      ->check(CLI::Range(0, 255));
}

bool IsLoopback(const std::string& address) {
  const std::string host = HostOf(address);
  return host == "localhost" || host == "::1" || host == "memory" || absl::StartsWith(host, "127.");
}

absl::Status CheckDaemonFlags(const DaemonFlags& flags, pb::Role role) {
  MU_RETURN_IF_ERROR(CheckAddress("--coordinator", flags.coordinator));
  MU_RETURN_IF_ERROR(CheckAdvertise(flags.advertise));
  if (!flags.http.empty())
    MU_RETURN_IF_ERROR(HttpAddress(flags.http, flags.tls, flags.insecure).status());
  return CheckListening(flags.listen, flags.tls, flags.insecure, role);
}

std::string AdvertisedAddress(const DaemonFlags& flags, const std::string& bound) {
  const HostPort at = SplitHostPort(bound).value_or(HostPort{bound});
  if (const auto wish = SplitHostPort(flags.advertise); wish.ok() && wish->port > 0)
    return flags.advertise;
  if (!flags.advertise.empty()) return JoinHostPort(HostOf(flags.advertise), at.port);
  return IsWildcard(at.host) ? JoinHostPort(HostName(), at.port) : bound;
}

std::string AdvertisedHttp(const DaemonFlags& flags, const std::string& bound, bool secure) {
  const HostPort at = SplitHostPort(bound).value_or(HostPort{bound});
  if (IsLoopback(bound) && !IsLoopback(flags.listen)) return "";
  const std::string host = IsLoopback(bound)          ? at.host
                           : !flags.advertise.empty() ? HostOf(flags.advertise)
                           : IsWildcard(at.host)      ? HostName()
                                                      : at.host;
  return absl::StrCat(secure ? "https://" : "http://", JoinHostPort(host, at.port));
}

void EndWithin(absl::Duration time, int code) {
  std::thread([time, code] {
    Notification never;
    never.WaitFor(time);
    _exit(code);
  }).detach();
}

DaemonProcess::DaemonProcess(const DaemonFlags& flags) : ready_fd_(flags.ready_fd) {}

absl::StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::Start(const DaemonFlags& flags) {
  auto process = std::unique_ptr<DaemonProcess>(new DaemonProcess(flags));
  RaiseDescriptorLimit();
  DisableFastBins();
  signal(SIGPIPE, SIG_IGN);
  if (flags.die_with_parent) {
    const pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have ended before the kernel knew of our wish.
    if (getppid() != parent) _exit(kExitInfrastructure);
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  if (flags.parent_pipe_fd >= 0) {
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
  } else {
    sigaddset(&signals, SIGINT);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  process->signal_fd_.Reset(signalfd(-1, &signals, SFD_CLOEXEC));
  process->wake_fd_.Reset(eventfd(0, EFD_CLOEXEC));
  if (!process->signal_fd_.valid() || !process->wake_fd_.valid()) {
    return ErrnoToStatus(errno, "create", "a signal or event descriptor");
  }
  // Whoever could want what we hold is gone then.
  WatchParent(flags.parent_pipe_fd, [] { _exit(kExitInfrastructure); });
  process->watcher_ = std::thread([p = process.get()] { p->Watch(); });
  return process;
}

DaemonProcess::~DaemonProcess() {
  const uint64_t one = 1;
  if (wake_fd_.valid()) (void)!write(wake_fd_.get(), &one, sizeof(one));
  if (watcher_.joinable()) watcher_.join();
}

void DaemonProcess::Watch() {
  pollfd fds[2] = {{wake_fd_.get(), POLLIN, 0}, {signal_fd_.get(), POLLIN, 0}};
  bool signalled = false;
  while (true) {
    if (poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (fds[0].revents != 0) return;
    if (fds[1].revents != 0) {
      signalfd_siginfo info;
      if (read(signal_fd_.get(), &info, sizeof(info)) != sizeof(info)) continue;
      if (signalled) _exit(128 + static_cast<int>(info.ssi_signo));
      signalled = true;
      RequestStop(absl::OkStatus());
    }
  }
}

absl::Status DaemonProcess::AnnounceReady(const std::string& address) {
  return mu::AnnounceReady(ready_fd_.Release(), address);
}

void DaemonProcess::OnStop(std::function<void()> callback) {
  MutexLock calling(&callback_mutex_);
  {
    MutexLock lock(&mutex_);
    if (!requested_ || callback == nullptr) {
      on_stop_ = std::move(callback);
      return;
    }
  }
  callback();
}

void DaemonProcess::RequestStop(absl::Status status) {
  MutexLock calling(&callback_mutex_);
  std::function<void()> callback;
  {
    MutexLock lock(&mutex_);
    if (requested_) return;
    requested_ = true;
    status_ = std::move(status);
    callback = std::move(on_stop_);
    on_stop_ = nullptr;
  }
  if (callback) callback();
  stop_.Notify();
}

absl::Status DaemonProcess::WaitForStop() {
  stop_.Wait();
  MutexLock lock(&mutex_);
  return status_;
}

}  // namespace mu
