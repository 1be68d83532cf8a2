// When a daemon that has ended is started again: at once if it had been well, else after a delay
// that grows from one start to the next, with jitter, so that one that dies at every start costs
// the others nothing. Pure: time is handed in. Not thread safe.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "common/base/backoff.h"

namespace mu {

class RestartPolicy {
 public:
  struct Options {
    absl::Duration healthy = absl::Seconds(1);  // a daemon that ran so long was well
    absl::Duration first = absl::Milliseconds(100);
    absl::Duration longest = absl::Seconds(10);
  };
  explicit RestartPolicy(uint64_t seed) : RestartPolicy(seed, Options()) {}
  RestartPolicy(uint64_t seed, const Options& options)
      : options_(options), backoff_(options.first, options.longest, seed) {}

  // How long to wait after the end of a daemon that ran for `ran`.
  absl::Duration Ended(absl::Duration ran) {
    if (ran >= options_.healthy) {
      deaths_ = 0;
      backoff_.Reset();
    }
    return deaths_++ == 0 ? absl::ZeroDuration() : backoff_.Next();
  }

 private:
  const Options options_;
  Backoff backoff_;
  uint64_t deaths_ = 0;  // one soon after the other
};

}  // namespace mu
