// The way to the parameter servers: the newest routing that the coordinator sent, and the client
// that uses it.
//
// Thread safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/client/ps_client.h"
#include "common/rpc/transport.h"
#include "proto/table.pb.h"

namespace mu {

class ParameterRoute {
 public:
  ParameterRoute(Transport* transport, RetryPolicy policy);

  // Takes the routing; an older one than the one here is ignored. INVALID_ARGUMENT if it is not
  // sane.
  absl::Status Update(const muster::RoutingProto& routing);
  // Of another epoch: as if there had been no Update.
  void Clear();
  void SetLowWater(uint64_t low_water);

  // FAILED_PRECONDITION: (ERROR_STALE) the servers' state was restored since; (ERROR_NOT_INSTALLED)
  // the routing of that generation is not here yet. 0 is not checked.
  absl::Status CheckGeneration(uint64_t generation) const;

  struct Snapshot {
    std::shared_ptr<PsClient> client;
    bool configured = false;  // there was an Update
    uint64_t generation = 0;
    uint64_t low_water = 0;
    uint64_t servers_version = 0;  // another one: servers are new or elsewhere
  };
  Snapshot snapshot() const;
  std::shared_ptr<const muster::RoutingProto> routing() const;  // never null

  // What is called when a server is new or elsewhere, so that calls to the old place are given up;
  // empty: nothing. Must not block.
  void SetInterrupt(std::function<void()> interrupt);

 private:
  const PsClient::Connect connect_;
  const RetryPolicy policy_;
  mutable Mutex mutex_;
  Snapshot current_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const muster::RoutingProto> routing_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> interrupt_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
