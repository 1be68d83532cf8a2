// Ctrl-C and SIGTERM: the first asks for a clean stop, the second ends the process at once (local
// daemons notice that their coordinator is gone and end too).
#pragma once

#include <atomic>

namespace mu {

// While it lives, SIGINT and SIGTERM are counted. At most one at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  std::atomic<int>* count();
  int signal() const;  // the first that came; 0: none
};

}  // namespace mu
