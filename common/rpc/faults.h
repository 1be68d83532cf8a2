// A transport with faults, for tests: wraps another one and loses, repeats or delays calls by
// method name, decided by a seed. Thread safe; rules may be added and cleared at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/hash.h"
#include "common/base/mutex.h"
#include "common/rpc/transport.h"

namespace mu {

enum class Fault {
  kLoseRequest,  // the server never hears of the call
  kLoseReply,    // the server runs it, the caller does not hear of that
  kDuplicate,    // the server gets the request twice; the caller hears the first answer
  kLateCopy,     // the same, and the second one comes later
  kDelay,        // the request leaves later
};

struct FaultRule {
  // Whole ("/muster.PsServer/Push") or its end ("Push"); empty: all. A stream in both directions is
  // one call, and each of its messages another one, by kind ("Feed/Run", see feed_kinds.h).
  std::string method;
  Fault fault = Fault::kLoseRequest;
  double probability = 1;
  int skip = 0;    // the first so many calls of the method that it would hit go well
  int times = -1;  // how often at most; -1: always
  absl::Duration delay = absl::Milliseconds(10);  // for kDelay and kLateCopy
  // What the caller of a lost call gets, as if its connection had broken. DEADLINE_EXCEEDED comes
  // when its time is up.
  absl::StatusCode error = absl::StatusCode::kUnavailable;
};

class FaultPlan {
 public:
  explicit FaultPlan(uint64_t seed) : random_(seed) {}

  void Add(FaultRule rule);
  void Clear();
  // The first rule that hits a call of `method` now, if any.
  bool Decide(const std::string& method, FaultRule* rule);
  // How often a rule has hit.
  int hits() const;
  // The methods that were called, whether a rule hit or not.
  std::set<std::string> called() const;

 private:
  mutable Mutex mutex_;
  SplitMix random_ ABSL_GUARDED_BY(mutex_);
  std::vector<FaultRule> rules_ ABSL_GUARDED_BY(mutex_);
  int hits_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::string> called_ ABSL_GUARDED_BY(mutex_);
};

// `inner` may be shared by several, e.g. one per member of a cluster, each with a plan of its own.
// The reply of a stream is all its messages: kLoseReply loses every one of them, and says so when
// the stream has ended. A message of a stream in both directions is lost with its connection, which
// ends with the rule's error.
std::unique_ptr<Transport> NewFaultyTransport(std::shared_ptr<Transport> inner,
                                              std::shared_ptr<FaultPlan> plan);

}  // namespace mu
