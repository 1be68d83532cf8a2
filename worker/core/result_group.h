// When the results of a run's steps are sent: those of very quick steps several in one message. A
// pure state machine.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace mu {

class ResultGroup {
 public:
  // A result is held back only while less than `interval` has passed since the last message.
  explicit ResultGroup(absl::Duration interval) : interval_(interval) {}

  // One more result is held. True: all that are held are to be sent now.
  bool Add(absl::Time now) {
    ++held_;
    if (sent_at_ + interval_ > now) return false;
    sent_at_ = now;
    held_ = 0;
    return true;
  }
  // Some are held, and are to be sent before the run's call ends, however it ends.
  bool holds() const { return held_ > 0; }
  // What follows is of another run.
  void Clear() {
    held_ = 0;
    sent_at_ = absl::InfinitePast();
  }

 private:
  const absl::Duration interval_;
  absl::Time sent_at_ = absl::InfinitePast();
  size_t held_ = 0;
};

}  // namespace mu
