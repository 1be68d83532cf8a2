#include "worker/node.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/obs/log.h"

namespace mu {
namespace {

constexpr absl::Duration kDrainPatience = absl::Seconds(5);
constexpr absl::Duration kLeaveTimeout = absl::Seconds(5);

WorkerOptions OptionsOf(const WorkerNodeOptions& options) {
  WorkerOptions worker = options.worker;
  worker.registers = true;
  worker.incarnation = RandomIdentity();
  if (options.index >= 0) worker.index = static_cast<uint32_t>(options.index);
  return worker;
}

}  // namespace

WorkerNode::WorkerNode(const WorkerNodeOptions& options, const WorkerOptions& worker,
                       Transport* transport)
    : options_(options),
      incarnation_(worker.incarnation),
      worker_(worker, transport),
      stuck_watcher_([this] { return worker_.place(); }, options.stuck_timeout, options.on_stuck) {}

WorkerNode::~WorkerNode() {
  if (membership_ != nullptr) membership_->Stop();
  Stop();
}

absl::StatusOr<std::unique_ptr<WorkerNode>> WorkerNode::Listen(Transport* transport,
                                                               WorkerNodeOptions options) {
  auto node = std::unique_ptr<WorkerNode>(new WorkerNode(options, OptionsOf(options), transport));
  MethodTable methods;
  node->worker_.AddMethods(&methods);
  AddHealthMethod(&methods, [n = node.get()] { return n->health(); });
  MU_ASSIGN_OR_RETURN(node->rpc_server_, transport->Listen(options.listen, std::move(methods)));
  const std::string bound = node->rpc_server_->address();
  node->address_ = options.advertise ? options.advertise(bound) : bound;

  MembershipOptions membership;
  membership.role = pb::ROLE_WORKER;
  membership.address = node->address_;
  membership.index = options.index;
  membership.may_move = [] { return true; };
  membership.incarnation = node->incarnation_;
  membership.http = options.http;
  membership.orphan_timeout = options.orphan_timeout;
  membership.on_registered = [n = node.get()](const pb::RegisterReply& reply, int64_t) {
    n->OnRegistered(reply);
  };
  membership.on_lost = options.on_lost;
  membership.on_dismissed = options.on_dismissed;
  node->membership_ = std::make_unique<MembershipClient>(
      transport->Connect(options.coordinator, pb::ROLE_COORDINATOR), std::move(membership));
  return node;
}

void WorkerNode::OnRegistered(const pb::RegisterReply& reply) {
  const absl::Status status = worker_.Registered(reply.job(), reply.epoch(), reply.index());
  if (!status.ok()) {
    MU_LOG(ERROR, "registration refused by this worker itself: {}", status);
    if (options_.on_lost) options_.on_lost(status);
    return;
  }
  registered_ = true;
  if (options_.on_registered) options_.on_registered(reply);
  MU_LOG(INFO, "worker {} serves at {} (epoch {})", reply.index(), address_, reply.epoch());
}

void WorkerNode::Drain(absl::Duration timeout) {
  const absl::Duration patience = std::min(kDrainPatience, timeout);
  worker_.Drain(patience, std::max(patience, timeout - kLeaveTimeout));
}

absl::Status WorkerNode::Leave(const std::string& reason, absl::Duration timeout) {
  const absl::Status status = membership_->Leave(reason, std::min(kLeaveTimeout, timeout));
  Stop();
  return status;
}

void WorkerNode::Stop() {
  if (rpc_server_ != nullptr) rpc_server_->Shutdown();
}

}  // namespace mu
