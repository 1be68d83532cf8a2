// Ctrl-C, SIGTERM, and SIGHUP, which comes when the terminal is closed, unless it is ignored
// (nohup): the first asks for a clean stop, the second ends the process at once (local daemons
// notice that their coordinator is gone and end too). A SIGHUP is no second one.
#pragma once

#include <atomic>

namespace mu {

// While it lives, these signals are counted. At most one at a time.
class StopSignals {
 public:
  // `saves`: a clean stop saves what was trained, so the first signal's answer says so.
  explicit StopSignals(bool saves);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  std::atomic<int>* count();
  int signal() const;  // the first that came; 0: none
};

}  // namespace mu
