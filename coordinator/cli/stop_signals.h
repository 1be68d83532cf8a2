// Ctrl-C, SIGTERM, and SIGHUP, which comes when the terminal is closed, unless it is ignored
// (nohup): the first asks for a clean stop, the second ends the process at once (local daemons
// notice that their coordinator is gone and end too). A SIGHUP is no second one.
#pragma once

#include <atomic>
#include <thread>

namespace mu {

// While it lives, these signals are counted. At most one at a time.
class StopSignals {
 public:
  // `json`: what signals are answered with are lines of JSON, as those of the log.
  explicit StopSignals(bool json = false);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  // From now on a clean stop saves what was trained, and the first signal's answer says so.
  void SetSaves();
  std::atomic<int>* count();
  int signal() const;  // the first that came; 0: none

 private:
  void AnswerInLog();

  std::atomic<bool> ended_{false};
  std::thread log_;  // answers the first signal with a line of the log, which no handler can write
};

// The kernel keeps signals that nobody handles from process 1, which a program is in a container.
// There these end the program at once from now on; StopSignals come before it. Elsewhere they do so
// anyway.
void EndOnSignalsAsFirstProcess();

}  // namespace mu
