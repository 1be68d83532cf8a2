// A daemon's HTTP port, and the node that it shows.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "common/http/monitor.h"
#include "common/process/daemon.h"
#include "common/process/observe_flags.h"
#include "common/rpc/health.h"

namespace mu {

// As the flags want it; null: they want none.
inline absl::StatusOr<std::unique_ptr<Monitor>> MonitorOf(const DaemonFlags& flags) {
  if (flags.http.empty()) return nullptr;
  MU_ASSIGN_OR_RETURN(const std::string address,
                      HttpAddress(flags.http, flags.tls, flags.insecure));
  return Monitor::Start({.listen = address, .tls = flags.tls});
}

inline MonitorHealth ToMonitorHealth(const Health& health) {
  return {health.ready, health.live,
          !health.live ? "its work stands still" : "it has not registered with its coordinator"};
}

// While it lives, the monitor (none: null) shows the node, which has health() and AddMetrics().
class WatchedNode {
 public:
  template <typename Node>
  WatchedNode(Monitor* monitor, Node* node) : monitor_(monitor) {
    if (monitor_ == nullptr) return;
    monitor_->Watch({.health = [node] { return ToMonitorHealth(node->health()); },
                     .metrics = [node](MetricList* list) { node->AddMetrics(list); }});
  }
  ~WatchedNode() {
    if (monitor_ != nullptr) monitor_->StopWatching();
  }
  WatchedNode(const WatchedNode&) = delete;
  WatchedNode& operator=(const WatchedNode&) = delete;

 private:
  Monitor* const monitor_;
};

}  // namespace mu
