// When the coordinator's end of a stream to a worker opens its next connection, and when it gives
// the worker up. A pure state machine: time comes in as an argument, by any clock.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace mu {

struct FeedPolicy {
  // For so long the worker may be silent, as far as this process ran.
  absl::Duration give_up = absl::Seconds(10);
  absl::Duration first_backoff = absl::Milliseconds(10);
  absl::Duration longest_backoff = absl::Seconds(1);
};

class FeedRetries {
 public:
  // Connections in a row on which the worker answers, and nothing comes of it.
  static constexpr uint32_t kMostFruitless = 50;

  FeedRetries(const FeedPolicy& policy, absl::Time now) : policy_(policy), counted_at_(now) {}

  // A connection begins. True: CountSilence is to be called after count_interval().
  bool Connected();
  absl::Duration count_interval() const { return policy_.give_up / kCounts; }
  // The worker has said something on the connection. `is_new`: with a message that had not come
  // before.
  void Answered(bool is_new);
  // The connection is over. How long to wait before the next one; none: the next one would do no
  // better, and the stream has ended.
  std::optional<absl::Duration> Broken(const absl::Status& status, absl::Time now);

  enum class Silence {
    kOver,     // the worker has answered: nothing is to be counted until Connected says so
    kGoesOn,   // CountSilence is to be called after count_interval()
    kGivenUp,  // the stream has ended
  };
  Silence CountSilence(absl::Time now);

 private:
  // A worker's silence is counted so often until it is given up, and at most twice as much at a
  // time: where there was more, this process has not run.
  static constexpr int kCounts = 8;

  const FeedPolicy policy_;
  uint64_t connections_ = 0;
  uint32_t fruitless_ = 0;  // connections in a row
  // Of the connection.
  bool answered_ = false;
  bool progress_ = false;  // something new came on it
  // Since the stream began, or since a connection on which the worker answered broke.
  absl::Duration silent_;
  absl::Time counted_at_;
  bool counting_ = false;  // CountSilence is to come
};

}  // namespace mu
