#include "psserver/node.h"

#include <utility>

#include "common/base/status.h"
#include "common/obs/log.h"

namespace mu {
namespace {

// A coordinator that speaks of no lease lets its servers serve as long as they live.
absl::Duration LeaseOf(uint32_t lease_ms) {
  return lease_ms == 0 ? absl::Hours(24 * 365) : absl::Milliseconds(lease_ms);
}

}  // namespace

PsNode::PsNode(const PsNodeOptions& options)
    : options_(options),
      server_({.leased = true,
               .registers = true,
               .telemetry = options.telemetry,
               .most_copies = options.most_copies,
               .most_applied = options.most_applied,
               .most_values = options.most_values}) {}

PsNode::~PsNode() {
  if (membership_ != nullptr) membership_->Stop();
  if (rpc_server_ != nullptr) rpc_server_->Shutdown();
}

absl::StatusOr<std::unique_ptr<PsNode>> PsNode::Listen(Transport* transport,
                                                       PsNodeOptions options) {
  auto node = std::unique_ptr<PsNode>(new PsNode(options));
  MethodTable methods;
  node->server_.RegisterMethods(&methods);
  AddHealthMethod(&methods, [n = node.get()] { return n->health(); });
  MU_ASSIGN_OR_RETURN(node->rpc_server_, transport->Listen(options.listen, std::move(methods)));
  const std::string bound = node->rpc_server_->address();
  node->address_ = options.advertise ? options.advertise(bound) : bound;

  MembershipOptions membership;
  membership.role = pb::ROLE_PSSERVER;
  membership.address = node->address_;
  membership.index = options.index;
  // What it holds is of its place.
  membership.may_move = [n = node.get()] { return !n->server_.placed(); };
  membership.http = options.http;
  membership.orphan_timeout = options.orphan_timeout;
  membership.on_registered = [n = node.get()](const pb::RegisterReply& reply, int64_t sent_ns) {
    n->OnRegistered(reply, sent_ns);
  };
  membership.fill_heartbeat = [n = node.get()](pb::HeartbeatRequest* request) {
    const PsServer::AppliedUsage usage = n->server_.applied_usage();
    request->set_applied_bytes(usage.bytes);
    request->set_most_applied_bytes(usage.most_bytes);
    request->set_busy(n->server_.progress().busy());
    request->set_moved_bytes(n->server_.progress().moved());
  };
  membership.on_heartbeat = [n = node.get()](const pb::HeartbeatReply& reply, int64_t sent_ns) {
    n->server_.RenewLease(sent_ns, LeaseOf(reply.lease_ms()), reply.generation());
    n->server_.RaiseLowWater(reply.low_water());
  };
  membership.on_lost = options.on_lost;
  membership.on_dismissed = options.on_dismissed;
  node->membership_ = std::make_unique<MembershipClient>(
      transport->Connect(options.coordinator, pb::ROLE_COORDINATOR), std::move(membership));
  return node;
}

void PsNode::OnRegistered(const pb::RegisterReply& reply, int64_t sent_ns) {
  const absl::Status status = server_.SetIdentity(reply.job(), reply.epoch(), reply.index());
  if (!status.ok()) {
    MU_LOG(ERROR, "registration refused by this server itself: {}", status);
    if (options_.on_lost) options_.on_lost(status);
    return;
  }
  server_.RenewLease(sent_ns, LeaseOf(reply.lease_ms()), reply.generation());
  registered_ = true;
  if (options_.on_registered) options_.on_registered(reply);
  MU_LOG(INFO, "registered as parameter server {} in epoch {}", reply.index(), reply.epoch());
}

absl::Status PsNode::Leave(const std::string& reason, absl::Duration timeout) {
  const absl::Status status = membership_->Leave(reason, timeout);
  rpc_server_->Shutdown();
  return status;
}

absl::Status PsNode::Drain(const std::string& reason, absl::Duration timeout) {
  const absl::Status status = membership_->Drain(reason, timeout);
  rpc_server_->Shutdown();
  return status;
}

}  // namespace mu
