#include "coordinator/launch/local_daemons.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/obs/log.h"

namespace mu {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(5);

}  // namespace

std::string LastLinesOf(const std::string& path, int lines) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const std::streamoff size = in.tellg();
  const std::streamoff tail = std::min<std::streamoff>(size, 8192);
  in.seekg(size - tail);
  std::string text(static_cast<size_t>(tail), '\0');
  in.read(text.data(), tail);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  size_t begin = text.size();
  for (int i = 0; i < lines && begin != std::string::npos && begin > 0; ++i)
    begin = text.rfind('\n', begin - 1);
  return begin == std::string::npos
             ? text
             : text.substr(begin + (begin < text.size() && text[begin] == '\n'));
}

absl::StatusOr<std::unique_ptr<LocalDaemons>> LocalDaemons::Start(LocalDaemonsOptions options) {
  std::unique_ptr<LocalDaemons> daemons(new LocalDaemons(std::move(options)));
  const LocalDaemonsOptions& o = daemons->options_;
  for (const char* binary : {"worker", "psserver"}) {
    const std::string path = absl::StrCat(o.binary_dir, "/", binary);
    if (access(path.c_str(), X_OK) != 0) {
      return absl::NotFoundError(absl::StrCat(
          "there is no program ", path,
          "; build it, or name the folder of the daemons' programs with --binary_dir"));
    }
  }
  {
    MutexLock lock(&daemons->mutex_);
    for (int i = 0; i < o.ps + o.workers; ++i) {
      auto daemon = std::make_unique<Daemon>();
      daemon->is_worker = i >= o.ps;
      daemon->index = daemon->is_worker ? i - o.ps : i;
      daemon->binary = absl::StrCat(o.binary_dir, daemon->is_worker ? "/worker" : "/psserver");
      daemon->name = absl::StrCat(daemon->is_worker ? "worker-" : "psserver-", daemon->index);
      daemon->restarts = std::make_unique<RestartPolicy>(static_cast<uint64_t>(getpid()) +
                                                         static_cast<uint64_t>(i));
      daemon->log_file = absl::StrCat(o.log_dir, "/", daemon->name, ".log");
      daemons->daemons_.push_back(std::move(daemon));
      MU_RETURN_IF_ERROR(daemons->StartDaemon(*daemons->daemons_.back()));
    }
  }
  daemons->supervisor_ = std::thread([d = daemons.get()] { d->Supervise(); });
  return daemons;
}

absl::Status LocalDaemons::StartDaemon(Daemon& daemon) {
  SubprocessOptions options;
  options.path = daemon.binary;
  options.args = {absl::StrCat("--coordinator=", options_.coordinator),
                  absl::StrCat("--index=", daemon.index)};
  if (daemon.is_worker)
    options.args.push_back(absl::StrCat("--cache_dir=", options_.cache_dir, "/", daemon.name));
  if (options_.http) options.args.push_back("--http=127.0.0.1:0");
  options.args.push_back(absl::StrCat("--log_format=", options_.log_format));
  options.output_file = daemon.log_file;
  options.ready_pipe = true;
  options.parent_pipe = true;
  options.on_exit = [this, d = &daemon](pid_t, const ExitStatus& status) {
    MutexLock lock(&mutex_);
    d->exited = true;
    d->exit_text = status.ToString();
    changed_.SignalAll();
  };
  daemon.exited = daemon.killed = false;
  daemon.started = SteadyNow();
  daemon.restart_at = absl::InfiniteFuture();
  daemon.kill_at = absl::InfiniteFuture();
  MU_ASSIGN_OR_RETURN(daemon.process, Subprocess::Start(options));
  return absl::OkStatus();
}

void LocalDaemons::HandleExit(Daemon& daemon, std::vector<std::function<void()>>* calls) {
  const pid_t pid = daemon.process->pid();
  const std::string how = daemon.exit_text;
  const std::string tail = LastLinesOf(daemon.log_file, 5);
  const std::string message =
      absl::StrCat(daemon.name, " (pid ", pid, ") ended: ", how, "; its last lines in ",
                   daemon.log_file, ":\n", tail.empty() ? "(none)" : tail);
  // The ready line is there, or its absence is known, since the process has ended.
  const bool served = daemon.process->ReadReadyLine(absl::Seconds(1)).ok();
  daemon.exited = false;
  // Keep the ended process object until the next start: it is destroyed on this thread, never on
  // its own.
  if (!served && !daemon.ever_served) {
    calls->push_back([this, message] {
      options_.cannot_start(absl::UnavailableError("a daemon could not start: " + message));
    });
    return;
  }
  daemon.ever_served = true;
  calls->push_back([this, pid, message] { options_.died(pid, message); });
  if (!(daemon.is_worker ? options_.restart_workers : options_.restart_servers)) return;
  const absl::Time now = SteadyNow();
  const absl::Duration delay = daemon.restarts->Ended(now - daemon.started);
  daemon.restart_at = now + delay;
  daemon.kill_at = absl::InfiniteFuture();
  // With its last lines, since the cluster may have noted its loss before: a connection that breaks
  // is often seen sooner than the end of the process, and says less.
  MU_LOG(WARN, "it is started again in {} ms: {}", absl::ToInt64Milliseconds(delay), message);
}

void LocalDaemons::Silent(int64_t pid) {
  MutexLock lock(&mutex_);
  for (auto& daemon : daemons_) {
    if (daemon->process == nullptr || daemon->process->pid() != pid || daemon->exited) continue;
    daemon->kill_at = SteadyNow() + (daemon->is_worker ? options_.wake_up : absl::ZeroDuration());
  }
  changed_.SignalAll();
}

void LocalDaemons::KillSilent() {
  std::vector<std::pair<Daemon*, pid_t>> suspects;
  {
    MutexLock lock(&mutex_);
    for (auto& daemon : daemons_) {
      if (SteadyNow() < daemon->kill_at) continue;
      daemon->kill_at = absl::InfiniteFuture();
      if (!daemon->exited && daemon->process != nullptr)
        suspects.emplace_back(daemon.get(), daemon->process->pid());
    }
  }
  // Only this thread ends or replaces a process.
  for (const auto& [daemon, pid] : suspects) {
    if (options_.is_member != nullptr && options_.is_member(pid)) continue;
    MU_LOG(WARN, "{} (pid {}) hangs: killing it, another one takes its place", daemon->name, pid);
    daemon->process->Kill(SIGKILL).IgnoreError();
  }
}

void LocalDaemons::Supervise() {
  while (true) {
    std::vector<std::function<void()>> calls;
    std::vector<std::unique_ptr<Subprocess>> ended;
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      absl::Time wake = absl::InfiniteFuture();
      bool exited = false;
      for (auto& daemon : daemons_) {
        wake = std::min({wake, daemon->restart_at, daemon->kill_at});
        exited |= daemon->exited;
      }
      if (!exited && SteadyNow() < wake)
        changed_.WaitFor(&mutex_, std::min(wake - SteadyNow(), absl::Seconds(60)));
      if (stopping_) return;
      for (auto& daemon : daemons_)
        if (daemon->exited) HandleExit(*daemon, &calls);
      for (auto& daemon : daemons_) {
        // An end is told before another one takes the place: in the next round then.
        if (!calls.empty() || SteadyNow() < daemon->restart_at) continue;
        ended.push_back(std::move(daemon->process));
        if (const absl::Status started = StartDaemon(*daemon); !started.ok()) {
          MU_LOG(ERROR, "{} could not be started again: {}", daemon->name, started);
          daemon->restart_at = SteadyNow() + daemon->restarts->Ended(absl::ZeroDuration());
        } else {
          MU_LOG(INFO, "{} started again (pid {})", daemon->name, daemon->process->pid());
        }
      }
    }
    for (auto& call : calls) call();
    KillSilent();
  }
}

std::vector<LocalDaemons::Process> LocalDaemons::Processes() const {
  MutexLock lock(&mutex_);
  std::vector<Process> processes;
  for (const auto& daemon : daemons_) {
    if (daemon->process != nullptr && !daemon->killed && !daemon->process->TryWait().has_value())
      processes.push_back({daemon->name, daemon->process->pid()});
  }
  return processes;
}

bool LocalDaemons::Signal(pid_t pid, int signal) {
  MutexLock lock(&mutex_);
  for (const auto& daemon : daemons_) {
    if (daemon->process == nullptr || daemon->process->pid() != pid || daemon->killed) continue;
    if (!daemon->process->Kill(signal).ok()) return false;
    daemon->killed = signal == SIGKILL;
    return true;
  }
  return false;
}

LocalDaemons::~LocalDaemons() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (supervisor_.joinable()) supervisor_.join();
  std::vector<std::unique_ptr<Daemon>> daemons;
  {
    MutexLock lock(&mutex_);
    daemons.swap(daemons_);
  }
  for (auto& daemon : daemons) {
    if (daemon->process == nullptr) continue;
    daemon->process->Kill(SIGTERM).IgnoreError();
    daemon->process->Kill(SIGCONT).IgnoreError();  // one that was stopped would not notice
  }
  const absl::Time until = SteadyNow() + kGrace;
  for (auto& daemon : daemons) {
    if (daemon->process == nullptr) continue;
    if (!daemon->process->WaitFor(std::max(absl::ZeroDuration(), until - SteadyNow()))) {
      MU_LOG(WARN, "{} does not end after SIGTERM; killing it", daemon->name);
    }
    daemon->process.reset();  // kills what is left, waits
  }
}

}  // namespace mu
