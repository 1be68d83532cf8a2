#include "common/env/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/steady_now.h"
#include "common/env/unique_fd.h"

extern char** environ;

namespace mu {
namespace {

// Where the child finds its pipes; everything above is closed in it.
constexpr int kFirstPipeFd = 3;
// The parent's copies stay clear of those numbers, so that dup2 in the child overwrites none of
// them.
constexpr int kParentFdsFrom = 16;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

absl::Status SystemError(absl::string_view what) { return absl::ErrnoToStatus(errno, what); }

absl::StatusOr<UniqueFd> MoveUp(UniqueFd fd) {
  UniqueFd moved(fcntl(fd.get(), F_DUPFD_CLOEXEC, kParentFdsFrom));
  if (!moved.valid()) return SystemError("cannot duplicate a file descriptor for a child process");
  return moved;
}

absl::StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return SystemError("cannot make a pipe to a child process");
  UniqueFd read(fds[0]);
  UniqueFd write(fds[1]);
  Pipe pipe;
  auto moved_read = MoveUp(std::move(read));
  if (!moved_read.ok()) return moved_read.status();
  auto moved_write = MoveUp(std::move(write));
  if (!moved_write.ok()) return moved_write.status();
  pipe.read = *std::move(moved_read);
  pipe.write = *std::move(moved_write);
  return pipe;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// `own` and what this process has beside them. Each name once: of two, getenv returns the first and
// some shells take the last.
std::vector<std::string> EnvironmentWith(const std::vector<std::string>& own) {
  std::vector<std::string> environment;
  std::set<std::string> names;
  const auto add = [&](const std::string& variable) {
    if (names.insert(variable.substr(0, variable.find('='))).second)
      environment.push_back(variable);
  };
  for (const std::string& variable : own) add(variable);
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    add(*variable);
  return environment;
}

// posix_spawn's file actions and attributes with their ends of life.
struct SpawnSetup {
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

// A process group of its own, no blocked signals, default actions: whatever the parent's threads
// have set up.
void SetAttributes(posix_spawnattr_t* attributes) {
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(attributes, &none);
  posix_spawnattr_setsigdefault(attributes, &all);
  posix_spawnattr_setpgroup(attributes, 0);
  posix_spawnattr_setflags(attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

ExitStatus FromWaitStatus(int status) {
  ExitStatus result;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
  } else {
    result.code = WEXITSTATUS(status);
  }
  return result;
}

}  // namespace

std::string ExitStatus::ToString() const {
  if (signal == 0) return absl::StrCat("exit code ", code);
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("killed by signal ", signal)
                         : absl::StrCat("killed by SIG", name);
}

struct Subprocess::State {
  std::string path;
  pid_t pid = -1;
  bool has_ready_pipe = false;
  UniqueFd ready;
  UniqueFd parent_pipe;  // its closing is what the child notices
  std::string ready_text;
  std::thread reaper;

  Mutex mutex;
  CondVar changed;
  bool reaped ABSL_GUARDED_BY(mutex) = false;
  ExitStatus exit ABSL_GUARDED_BY(mutex);

  void Reap(const std::function<void(pid_t, const ExitStatus&)>& on_exit) {
    // First wait without reaping: under the lock the pid is either still ours or known to be gone,
    // so that Kill never hits a process that got the number later.
    siginfo_t info;
    while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    ExitStatus status;
    {
      MutexLock lock(&mutex);
      int wait_status = 0;
      while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
      }
      status = exit = FromWaitStatus(wait_status);
      reaped = true;
      changed.SignalAll();
    }
    if (on_exit) on_exit(pid, status);
  }
};

absl::StatusOr<std::unique_ptr<Subprocess>> Subprocess::Start(const SubprocessOptions& options) {
  auto state = std::make_unique<State>();
  state->path = options.path;
  std::vector<std::string> args = {options.path};
  args.insert(args.end(), options.args.begin(), options.args.end());
  std::vector<std::string> environment = EnvironmentWith(options.environment);

  SpawnSetup setup;
  SetAttributes(&setup.attributes);
  posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  UniqueFd output;
  if (!options.output_file.empty()) {
    UniqueFd file(
        open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file.valid()) {
      return SystemError(
          absl::StrCat("cannot write ", options.output_file, ", the output of ", options.path));
    }
    auto moved = MoveUp(std::move(file));
    if (!moved.ok()) return moved.status();
    output = *std::move(moved);
    posix_spawn_file_actions_adddup2(&setup.actions, output.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&setup.actions, output.get(), STDERR_FILENO);
  }

  int next_fd = kFirstPipeFd;
  UniqueFd child_ready;
  UniqueFd child_parent;
  if (options.ready_pipe) {
    auto pipe = MakePipe();
    if (!pipe.ok()) return pipe.status();
    posix_spawn_file_actions_adddup2(&setup.actions, pipe->write.get(), next_fd);
    args.push_back(absl::StrCat("--ready_fd=", next_fd++));
    child_ready = std::move(pipe->write);
    state->ready = std::move(pipe->read);
    state->has_ready_pipe = true;
  }
  if (options.parent_pipe) {
    auto pipe = MakePipe();
    if (!pipe.ok()) return pipe.status();
    posix_spawn_file_actions_adddup2(&setup.actions, pipe->read.get(), next_fd);
    args.push_back(absl::StrCat("--parent_pipe_fd=", next_fd++));
    child_parent = std::move(pipe->read);
    state->parent_pipe = std::move(pipe->write);
  }
  posix_spawn_file_actions_addclosefrom_np(&setup.actions, next_fd);

  // glibc's posix_spawn shares memory with the child until exec and runs nothing of ours in
  // between: it is safe with threads, and as quick for a large parent as for a small one.
  std::vector<char*> argv = Pointers(args);
  std::vector<char*> envp = Pointers(environment);
  const int error = posix_spawnp(&state->pid, options.path.c_str(), &setup.actions,
                                 &setup.attributes, argv.data(), envp.data());
  if (error != 0) {
    return absl::ErrnoToStatus(
        error, absl::StrCat("cannot run ", options.path, "; is it there, and may it be executed?"));
  }
  State* raw = state.get();
  state->reaper = std::thread([raw, on_exit = options.on_exit] { raw->Reap(on_exit); });
  return std::unique_ptr<Subprocess>(new Subprocess(std::move(state)));
}

Subprocess::Subprocess(std::unique_ptr<State> state) : state_(std::move(state)) {}

Subprocess::~Subprocess() {
  Kill(SIGKILL).IgnoreError();  // NOT_FOUND: it ended by itself
  state_->reaper.join();
}

absl::StatusOr<std::string> Subprocess::ReadReadyLine(absl::Duration timeout) {
  if (!state_->has_ready_pipe) return absl::FailedPreconditionError("started without a ready pipe");
  const absl::Time deadline = SteadyNow() + timeout;
  while (true) {
    if (const size_t end = state_->ready_text.find('\n'); end != std::string::npos) {
      return state_->ready_text.substr(0, end);
    }
    const absl::Duration left = std::max(absl::ZeroDuration(), deadline - SteadyNow());
    pollfd wanted = {state_->ready.get(), POLLIN, 0};
    // Rounded up, so that the last poll does not spin; long waits are cut and go round again.
    const int64_t wait_ms = std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1, 60000);
    const int count = poll(&wanted, 1, static_cast<int>(wait_ms));
    if (count < 0 && errno != EINTR) return SystemError("cannot wait for a child process");
    if (count > 0) {
      char bytes[512];
      const ssize_t size = read(state_->ready.get(), bytes, sizeof(bytes));
      if (size > 0) {
        state_->ready_text.append(bytes, static_cast<size_t>(size));
      } else if (size == 0) {
        // The pipe closes a moment before the process is gone.
        const std::optional<ExitStatus> exit = WaitFor(absl::Seconds(1));
        return absl::UnavailableError(
            absl::StrCat(state_->path, " (pid ", state_->pid, ") ",
                         exit ? "ended before it was ready: " + exit->ToString()
                              : "closed its ready pipe without a line"));
      } else if (errno != EINTR) {
        return SystemError("cannot read from a child process");
      }
    } else if (SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(state_->path, " (pid ", state_->pid,
                                                      ") was not ready within ",
                                                      absl::FormatDuration(timeout)));
    }
  }
}

pid_t Subprocess::pid() const { return state_->pid; }

absl::Status Subprocess::Kill(int signal) {
  MutexLock lock(&state_->mutex);
  if (state_->reaped) {
    return absl::NotFoundError(absl::StrCat(state_->path, " has ended: ", state_->exit.ToString()));
  }
  if (kill(state_->pid, signal) != 0)
    return SystemError(absl::StrCat("cannot signal ", state_->path));
  return absl::OkStatus();
}

std::optional<ExitStatus> Subprocess::TryWait() {
  MutexLock lock(&state_->mutex);
  if (!state_->reaped) return std::nullopt;
  return state_->exit;
}

ExitStatus Subprocess::Wait() {
  MutexLock lock(&state_->mutex);
  while (!state_->reaped) state_->changed.Wait(&state_->mutex);
  return state_->exit;
}

std::optional<ExitStatus> Subprocess::WaitFor(absl::Duration timeout) {
  const absl::Time deadline = SteadyNow() + timeout;
  MutexLock lock(&state_->mutex);
  while (!state_->reaped) {
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    state_->changed.WaitFor(&state_->mutex, left);
  }
  return state_->exit;
}

}  // namespace mu
