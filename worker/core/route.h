// Which routing to the parameter servers a worker uses: the newest that its coordinator sent. A
// pure state machine.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace mu {

// What the core has to know of a routing.
struct WorkerRouting {
  struct Server {
    uint32_t index = 0;
    std::string address;
    uint64_t incarnation = 0;
    friend bool operator==(const Server&, const Server&) = default;
  };
  uint64_t version = 0;
  Generation generation;  // of the servers' state
  std::vector<Server> servers;
};

class WorkerRoute {
 public:
  // An older one than the one that is used is not taken.
  bool IsNews(const WorkerRouting& routing) const;
  void Take(WorkerRouting routing);
  // Of another epoch: as if none had been taken.
  void Clear();

  // FAILED_PRECONDITION: (ERROR_STALE) the servers' state was restored since; (ERROR_NOT_INSTALLED)
  // the routing of that generation is not here yet. 0 is not checked.
  absl::Status CheckGeneration(Generation generation) const;

  bool configured() const { return configured_; }
  Generation generation() const { return routing_.generation; }
  // Another one: servers are new or elsewhere.
  uint64_t servers_version() const { return servers_version_; }

 private:
  bool configured_ = false;
  WorkerRouting routing_;
  uint64_t servers_version_ = 0;
};

}  // namespace mu
