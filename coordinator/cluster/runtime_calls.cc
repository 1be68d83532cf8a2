// Calls of daemons: registration, heartbeats, leaves, status.
#include <algorithm>
#include <utility>

#include "common/rpc/typed.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

MethodTable Runtime::Methods() {
  MethodTable methods;
  methods.AddUnary(
      "/muster.Coordinator/Register", RunOn::kTransportThread,
      TypedHandler<pb::RegisterRequest>([this](const auto& r) { return OnRegister(r); }));
  methods.AddUnary(
      "/muster.Coordinator/Heartbeat", RunOn::kTransportThread,
      TypedHandler<pb::HeartbeatRequest>([this](const auto& r) { return OnHeartbeat(r); }));
  methods.AddUnary(
      "/muster.Coordinator/Leave", RunOn::kTransportThread,
      [this](std::shared_ptr<ServerCall> call, Buffer bytes) { OnLeave(std::move(call), bytes); });
  methods.AddUnary("/muster.Coordinator/GetStatus", RunOn::kTransportThread,
                   TypedHandler<pb::GetStatusRequest>([this](const pb::GetStatusRequest&) {
                     return absl::StatusOr<pb::GetStatusReply>(Status());
                   }));
  return methods;
}

absl::StatusOr<pb::RegisterReply> Runtime::OnRegister(const pb::RegisterRequest& request) {
  MutexLock lock(&mutex_);
  Step(event::Register{next_call_, request});
  MU_RETURN_IF_ERROR(registered_->status);
  pb::RegisterReply reply;
  reply.set_job(options_.job.value());
  reply.set_epoch(options_.epoch.value());
  reply.set_index(registered_->index);
  reply.set_heartbeat_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.heartbeat)));
  reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.timeout)));
  reply.set_generation(registered_->generation.value());
  return reply;
}

absl::StatusOr<pb::HeartbeatReply> Runtime::OnHeartbeat(const pb::HeartbeatRequest& request) {
  MutexLock lock(&mutex_);
  Step(event::Heartbeat{next_call_, request});
  MU_RETURN_IF_ERROR(beaten_->status);
  pb::HeartbeatReply reply;
  reply.set_low_water(beaten_->low_water.value());
  reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.timeout)));
  reply.set_generation(beaten_->generation.value());
  return reply;
}

void Runtime::OnLeave(std::shared_ptr<ServerCall> call, const Buffer& bytes) {
  pb::LeaveRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return call->Finish(absl::InvalidArgumentError("the request does not parse as a LeaveRequest"));
  }
  MutexLock lock(&mutex_);
  next_call_ = next_call_.Next();
  leave_calls_[next_call_] = std::move(call);
  Step(event::Leave{next_call_, std::move(request)});
}

void Runtime::SetOnSilent(std::function<void(const Member&)> on_silent) {
  MutexLock lock(&mutex_);
  on_silent_ = std::move(on_silent);
}

bool Runtime::IsMember(int64_t pid) const {
  MutexLock lock(&mutex_);
  const std::vector<Member> members = core_.membership().All();
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& member) { return member.pid == pid; });
}

void Runtime::DaemonDied(int64_t pid, const std::string& message) {
  MutexLock lock(&mutex_);
  Step(event::DaemonDied{pid, message});
}

}  // namespace mu
