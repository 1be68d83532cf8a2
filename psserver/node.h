// A parameter server as a member of a cluster: it listens, registers with the coordinator and
// serves while its lease lasts. main() runs one per process; an in-process cluster runs several.
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
#include "common/obs/telemetry.h"
#include "common/rpc/health.h"
#include "common/rpc/transport.h"
#include "psserver/server.h"

namespace mu {

struct PsNodeOptions {
  std::string coordinator;  // its address
  std::string listen = "127.0.0.1:0";
  // How others reach what was bound; none: as it was bound.
  std::function<std::string(const std::string& bound)> advertise;
  int32_t index = -1;  // the wish
  std::string http;    // where this process serves metrics; empty: nowhere
  absl::Duration orphan_timeout = absl::Minutes(10);
  Telemetry* telemetry = &Telemetry::Process();
  size_t most_copies = 0;    // as PsServerOptions has it
  size_t most_applied = 0;   // the same
  uint64_t most_values = 0;  // the same
  // The coordinator is out of reach for too long or refuses this server; from the heartbeat thread,
  // at most once.
  std::function<void(absl::Status)> on_lost;
  // The job is over; as MembershipOptions has it.
  std::function<void()> on_dismissed;
  // After each registration. May be null.
  std::function<void(const muster::RegisterReply&)> on_registered;
};

class PsNode {
 public:
  // Takes calls from now on (and refuses them until it is registered). UNAVAILABLE if the address
  // is in use.
  static absl::StatusOr<std::unique_ptr<PsNode>> Listen(Transport* transport,
                                                        PsNodeOptions options);
  ~PsNode();  // without leaving

  const std::string& address() const { return address_; }  // as advertised
  PsServer& server() { return server_; }
  // Ready: it has registered.
  Health health() const { return {.ready = registered_}; }

  void AddMetrics(MetricList* list) { server_.AddMetrics(list); }

  // Blocks until registered; errors as MembershipClient::Register.
  absl::Status Register() { return membership_->Register(); }
  // Makes a Register under way return CANCELLED.
  void RequestStop() { membership_->RequestStop(); }
  // Says good-bye to the coordinator and stops serving.
  absl::Status Leave(const std::string& reason, absl::Duration timeout = absl::Seconds(5));
  // The same, but serves until the coordinator has answered (it takes a checkpoint first), for
  // `timeout` at most.
  absl::Status Drain(const std::string& reason, absl::Duration timeout);
  uint32_t index() const { return membership_->registration().index(); }

 private:
  explicit PsNode(const PsNodeOptions& options);
  void OnRegistered(const muster::RegisterReply& reply, int64_t sent_ns);

  const PsNodeOptions options_;
  PsServer server_;
  std::string address_;
  std::atomic<bool> registered_ = false;
  // In this order they end: first no more heartbeats, then no more calls.
  std::unique_ptr<RpcServer> rpc_server_;
  std::unique_ptr<MembershipClient> membership_;
};

}  // namespace mu
