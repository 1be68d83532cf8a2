// Calls of daemons: registration, heartbeats, leaves, status.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/rpc/health.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

template <typename Request>
Handler Runtime::AnsweredOnLoop(void (Runtime::*answer)(std::shared_ptr<ServerCall>, Request)) {
  return [this, answer](std::shared_ptr<ServerCall> call, const Buffer& bytes) {
    Request request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return call->Finish(
          absl::InvalidArgumentError("the request does not parse as " + request.GetTypeName()));
    }
    loop_.Post([this, answer, call = std::move(call), request = std::move(request)] {
      (this->*answer)(call, request);
    });
  };
}

template <typename E, typename Request>
void Runtime::AskCore(std::shared_ptr<ServerCall> call, Request request) {
  loop_.AssertHeld();
  if (request.role() != pb::ROLE_WORKER && request.role() != pb::ROLE_PSSERVER) {
    return call->Finish(WithKind(
        absl::InvalidArgumentError("only workers and parameter servers belong to a cluster"),
        pb::ERROR_USER, pb::ROLE_UNSPECIFIED));
  }
  if (!call->CallerMayBe(request.role())) {
    return call->Finish(
        WithKind(absl::PermissionDeniedError(absl::StrCat("the caller's certificate is not one of ",
                                                          TlsNameOf(request.role()))),
                 pb::ERROR_USER, pb::ROLE_UNSPECIFIED));
  }
  next_call_ = next_call_.Next();
  calls_[next_call_] = std::move(call);
  Step(E{next_call_, std::move(request)});
}

void Runtime::AnswerStatus(std::shared_ptr<ServerCall> call, pb::GetStatusRequest) {
  loop_.AssertHeld();
  call->Finish(absl::OkStatus(), Buffer(StatusNow().SerializeAsString()));
}

MethodTable Runtime::Methods() {
  MethodTable methods;
  const auto add = [&](const char* name, Handler handler) {
    methods.AddUnary(std::string("/muster.Coordinator/") + name, RunOn::kTransportThread,
                     std::move(handler));
  };
  add("Register", AnsweredOnLoop(&Runtime::AskCore<event::Register, pb::RegisterRequest>));
  add("Heartbeat", AnsweredOnLoop(&Runtime::AskCore<event::Heartbeat, pb::HeartbeatRequest>));
  add("Leave", AnsweredOnLoop(&Runtime::AskCore<event::Leave, pb::LeaveRequest>));
  // An answer says that the loop is live.
  AddHealthMethod(&methods, [this] { return Health{.ready = ended().ok()}; });
  add("GetStatus", AnsweredOnLoop(&Runtime::AnswerStatus));
  return methods;
}

void Runtime::Answer(CallId id, const absl::Status& status,
                     const google::protobuf::Message& reply) {
  const auto call = calls_.extract(id);
  if (call.empty()) return;
  call.mapped()->Finish(status, status.ok() ? Buffer(reply.SerializeAsString()) : Buffer());
}

void Runtime::Do(action::AnswerRegister& a) {
  pb::RegisterReply reply;
  reply.set_job(options_.job.value());
  reply.set_epoch(options_.epoch.value());
  reply.set_index(a.index);
  reply.set_heartbeat_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(a.heartbeat)));
  reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.timeout)));
  reply.set_generation(a.generation.value());
  reply.set_job_name(options_.job_name);
  Answer(a.call, a.status, reply);
}

void Runtime::Do(action::AnswerHeartbeat& a) {
  pb::HeartbeatReply reply;
  reply.set_low_water(a.low_water.value());
  reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.timeout)));
  reply.set_generation(a.generation.value());
  reply.set_dismissed(a.dismissed);
  Answer(a.call, a.status, reply);
}

void Runtime::Do(action::AnswerLeave& a) { Answer(a.call, absl::OkStatus(), pb::LeaveReply()); }

void Runtime::SetOnSilent(std::function<void(const Member&)> on_silent) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    on_silent_ = std::move(on_silent);
  });
}

bool Runtime::IsMember(int64_t pid) const {
  return loop_.Ask([&] {
    loop_.AssertHeld();
    const std::vector<Member> members = core_.membership().All();
    return std::any_of(members.begin(), members.end(),
                       [&](const Member& member) { return member.pid == pid; });
  });
}

void Runtime::DaemonDied(int64_t pid, const std::string& message) {
  PostStep(event::DaemonDied{pid, message});
}

}  // namespace mu
