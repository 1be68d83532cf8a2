// A worker as a member of a cluster: it listens, registers with the coordinator and runs functions
// until it leaves. main() runs one per process; an in-process cluster runs several.
//
// Thread safe after Listen.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/client/membership.h"
#include "common/rpc/health.h"
#include "common/rpc/transport.h"
#include "worker/stuck_watcher.h"
#include "worker/worker_server.h"

namespace mu {

struct WorkerNodeOptions {
  std::string coordinator;  // its address
  std::string listen = "127.0.0.1:0";
  // How others reach what was bound; none: as it was bound.
  std::function<std::string(const std::string& bound)> advertise;
  int32_t index = -1;  // the wish
  std::string http;    // where this process serves metrics; empty: nowhere
  absl::Duration orphan_timeout = absl::Minutes(10);
  WorkerOptions worker;  // but for `index` and `registers`
  // A step that stands still for so long is stuck: on_stuck is called, at most once. 0: none is.
  absl::Duration stuck_timeout;
  std::function<void(const std::string& doing)> on_stuck;
  // The coordinator is out of reach for too long or refuses this worker, or the worker refuses it;
  // from the heartbeat thread.
  std::function<void(absl::Status)> on_lost;
  // The job is over; as MembershipOptions has it.
  std::function<void()> on_dismissed;
  // After each registration. May be null.
  std::function<void(const muster::RegisterReply&)> on_registered;
};

class WorkerNode {
 public:
  // Takes calls from now on (which wait until it is registered). UNAVAILABLE if the address is in
  // use.
  static absl::StatusOr<std::unique_ptr<WorkerNode>> Listen(Transport* transport,
                                                            WorkerNodeOptions options);
  ~WorkerNode();  // without leaving

  const std::string& address() const { return address_; }  // as advertised
  WorkerServer& worker() { return worker_; }
  // Ready: it has registered. Not live: its step is stuck.
  Health health() const { return {.ready = registered_, .live = !stuck_watcher_.stuck()}; }

  void AddMetrics(MetricList* list) const { worker_.AddMetrics(list); }

  // Blocks until registered; errors as MembershipClient::Register.
  absl::Status Register() { return membership_->Register(); }
  // Makes a Register under way return CANCELLED.
  void RequestStop() { membership_->RequestStop(); }
  // The running step is finished and the rest handed back; heartbeats go on. After `timeout`, or 5
  // seconds, the step is given up and handed back as well, but its updates are seen through, once
  // they are under way, until 5 seconds before `timeout`. A step that computes or reads data may go
  // on when this returns: nothing comes of it, and the destructor waits for it.
  void Drain(absl::Duration timeout);
  // After Drain: says good-bye, which the coordinator answers when it has all results, within
  // `timeout` or 5 seconds, and takes no calls any more.
  absl::Status Leave(const std::string& reason, absl::Duration timeout);
  // The same without a word to the coordinator.
  void Stop();

 private:
  explicit WorkerNode(const WorkerNodeOptions& options, const WorkerOptions& worker,
                      Transport* transport);
  void OnRegistered(const muster::RegisterReply& reply);

  const WorkerNodeOptions options_;
  const Incarnation incarnation_;
  WorkerServer worker_;
  StuckWatcher stuck_watcher_;
  std::string address_;
  std::atomic<bool> registered_ = false;
  // In this order they end: first no more heartbeats, then no more calls.
  std::unique_ptr<RpcServer> rpc_server_;
  std::unique_ptr<MembershipClient> membership_;
};

}  // namespace mu
