// When functions that change parameters have to wait because there is no room to remember them. A
// pure state machine: events in, changes out; no clock, thread or socket.
//
// Until two checkpoints hold a function, every server remembers its pushes and the coordinator
// keeps the function for a repeat. If no checkpoint succeeds, that fills up. From 90% of any of
// these memories on, no new function that changes parameters is started; those that have begun go
// on, since the low-water mark waits for them. Below 75% of all of them new ones are started again.
//
// A server with no room at all refuses pushes. A function that was refused is not sent again before
// that server has reported room, so nothing spins. Only the oldest function that checkpoints do not
// cover is sent at once, without a question here: no server refuses its pushes, and others may hold
// the memory until it has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "common/base/ids.h"

namespace mu {

class UpdatePause {
 public:
  struct Memory {
    uint64_t bytes = 0;
    uint64_t most_bytes = 0;  // 0: no bound is known
  };
  enum class Change { kNone, kPaused, kResumed };

  [[nodiscard]] Change ServerReports(uint32_t server, const Memory& memory);
  // It refused a push of the function, which goes back to the queue.
  [[nodiscard]] Change ServerRefused(uint32_t server, FunctionId function);
  // It was lost, or let go: what takes its place remembers nothing yet.
  [[nodiscard]] Change ServerGone(uint32_t server);
  // What the coordinator keeps for repeats.
  [[nodiscard]] Change CoordinatorKeeps(const Memory& memory);

  bool paused() const { return paused_; }
  // Whether it would be if the coordinator kept so many more bytes.
  bool paused(uint64_t more) const;
  // Whether a function that changes parameters has to wait. `begun`: it was started before.
  bool Holds(FunctionId function, bool begun) const {
    return paused_ && (!begun || refused_.contains(function));
  }
  // Of the fullest memory, for the log: who remembers how much of what.
  std::string Describe() const;

 private:
  static bool Below(const Memory& memory, uint64_t percent) {
    return memory.most_bytes == 0 || memory.bytes * 100 < memory.most_bytes * percent;
  }
  // Counts a server's memory among those that are too full, or no longer.
  void Count(const Memory& memory, bool added);
  Change Update();

  std::map<uint32_t, Memory> servers_;
  size_t not_below_resume_ = 0, not_below_pause_ = 0;  // of them
  Memory own_;
  std::map<FunctionId, uint32_t> refused_;  // by which server
  bool paused_ = false;
};

}  // namespace mu
