// A child process: started, watched and ended. Safe to use from a program with many threads.
//
// The child gets /dev/null as its input, its output goes to a file (or stays the parent's), and it
// inherits no other file descriptors than the pipes asked for:
//
// - ready pipe: the child gets --ready_fd=N and writes one line to it when it serves
// (AnnounceReady), e.g. its address.
// - parent pipe: the child gets --parent_pipe_fd=N and sees end of file there when the parent is
// gone, however it ended
//   (WatchParent). PR_SET_PDEATHSIG would not do: it fires when the *thread* that started the child
//   ends.
//
// The child is in a process group of its own, so Ctrl-C at a terminal reaches only the parent,
// which decides.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace mu {

struct ExitStatus {
  int code = 0;    // if it exited by itself
  int signal = 0;  // if a signal killed it
  bool ok() const { return code == 0 && signal == 0; }
  std::string ToString() const;  // "exit code 4", "killed by SIGKILL"
};

struct SubprocessOptions {
  std::string path;  // of the program; searched in PATH if it has no slash
  std::vector<std::string> args;
  std::string output_file;  // stdout and stderr are appended to it; empty: the parent's own
  bool ready_pipe = false;
  bool parent_pipe = false;
  std::vector<std::string> environment;  // "NAME=value"; the parent's others stay
  std::function<void(pid_t, const ExitStatus&)>
      on_exit;  // called once, from a thread of the Subprocess
};

// Thread safe.
class Subprocess {
 public:
  // NOT_FOUND or PERMISSION_DENIED if the program cannot be run, others if the output file or pipes
  // cannot be made.
  static absl::StatusOr<std::unique_ptr<Subprocess>> Start(const SubprocessOptions& options);

  // Kills the child (SIGKILL) if it still runs, waits for it, and for on_exit.
  ~Subprocess();

  // The line that the child announced, without its end. UNAVAILABLE if the child ended first (the
  // message says how), DEADLINE_EXCEEDED after `timeout`; FAILED_PRECONDITION without a ready pipe.
  // One caller at a time.
  absl::StatusOr<std::string> ReadReadyLine(absl::Duration timeout);

  pid_t pid() const;
  // Sends a signal; NOT_FOUND if the child has ended (never reaches a stranger that got its pid).
  absl::Status Kill(int signal);
  std::optional<ExitStatus> TryWait();
  ExitStatus Wait();
  // Nothing if the timeout expired first.
  std::optional<ExitStatus> WaitFor(absl::Duration timeout);

 private:
  struct State;
  explicit Subprocess(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

// Where this process's program lies; "." if that cannot be told.
std::string FolderOfThisProgram();

// In the child.

// Writes `line` to the ready pipe and closes it. Does nothing for a negative fd.
absl::Status AnnounceReady(int ready_fd, const std::string& line);

// Starts a thread that waits for the parent to be gone and then calls `gone` (which may end the
// process). Nothing for a negative fd.
void WatchParent(int parent_pipe_fd, std::function<void()> gone);

}  // namespace mu
