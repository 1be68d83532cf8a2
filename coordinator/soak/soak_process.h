// A run of a soak as a process of its own: the command line that a user would give.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/soak/soak.h"

namespace mu {

struct SoakCommand {
  std::string program;
  // `train JOB.yaml` and its flags, without --job_dir, --report, --chaos and --parent_pipe_fd,
  // which are added.
  std::vector<std::string> args;
  std::string metric;  // by which quality is judged; empty: a usual one that the report has
  bool exact = true;   // each run must use as many samples as undisturbed
  // On a cluster, whose daemons are not this machine's: what the shell runs for each preemption
  // (preempt_command.h). Empty: --chaos does it.
  std::string preempt_command;
  // The first that counts is passed on to the run as SIGINT, which ends it cleanly.
  std::atomic<int>* stop = nullptr;
};

// Trains and tells what came of it. INVALID_ARGUMENT if, undisturbed, it says that the job is
// wrong; its output is in the message.
absl::StatusOr<SoakRecord> TrainAsProcess(const SoakCommand& command, const SoakRun& run);

}  // namespace mu
