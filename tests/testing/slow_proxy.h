// A bad network between two processes, for tests: a TCP proxy that delays every chunk, stalls some
// for longer and resets some connections, as a seed decides. (Chunks of one direction stay in
// order, as TCP keeps them.)
//
//   MU_ASSERT_OK_AND_ASSIGN(auto proxy, SlowProxy::Start({.target = "127.0.0.1:7000", .seed = 7}));
//   ... connect to proxy->address() ...
//
// The target need not listen yet: a connection that cannot be made through is reset. Thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace mu::testing {

struct SlowProxyOptions {
  std::string target;  // "127.0.0.1:7000", numbers only
  std::string source;  // the host that it calls from, "127.0.0.2" say; empty: any
  absl::Duration delay = absl::Milliseconds(50);
  absl::Duration stall = absl::Milliseconds(200);
  double stall_probability = 0.01;  // of a chunk
  // About so many chunks, of all connections, after a reset another connection is reset; 0: never.
  uint64_t chunks_between_resets = 0;
  uint64_t seed = 1;
};

class SlowProxy {
 public:
  static absl::StatusOr<std::unique_ptr<SlowProxy>> Start(SlowProxyOptions options);
  ~SlowProxy();  // resets all connections

  const std::string& address() const;
  struct Counts {
    int connections = 0, chunks = 0, stalls = 0, resets = 0;
  };
  Counts counts() const;

 private:
  class Loop;
  explicit SlowProxy(std::unique_ptr<Loop> loop);
  const std::unique_ptr<Loop> loop_;
};

}  // namespace mu::testing
