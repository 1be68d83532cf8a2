// Which handler answers which method, and on which thread: what blocks runs on a thread of its own.
#include "common/rpc/telemetry_service.h"
#include "common/rpc/typed.h"
#include "psserver/server.h"

namespace mu {

void PsServer::RegisterMethods(MethodTable* methods) {
  const auto add = [methods](const char* name, RunOn run_on, Handler handler) {
    methods->AddUnary(std::string("/muster.PsServer/") + name, run_on, std::move(handler));
  };
  add("Pull", RunOn::kTransportThread, [this](std::shared_ptr<ServerCall> call, Buffer request) {
    Pull(
        request, [call] { return call->IsCancelled(); },
        [call](absl::StatusOr<Buffer> reply) {
          if (!reply.ok()) return call->Finish(reply.status());
          call->Finish(absl::OkStatus(), *std::move(reply));
        });
  });
  add("Push", RunOn::kTransportThread, [this](std::shared_ptr<ServerCall> call, Buffer request) {
    Push(
        request,
        [call](absl::StatusOr<pb::PushReply> reply) {
          if (!reply.ok()) return call->Finish(reply.status());
          call->Finish(absl::OkStatus(), Buffer(reply->SerializeAsString()));
        },
        [call] { return call->IsCancelled(); });
  });
  add("Scan", RunOn::kOwnThread, [this](std::shared_ptr<ServerCall> call, Buffer bytes) {
    pb::ScanRequest request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return call->Finish(
          absl::InvalidArgumentError("the request does not parse as a ScanRequest"));
    }
    auto reply = Scan(request);
    if (!reply.ok()) return call->Finish(reply.status());
    call->Finish(absl::OkStatus(), *std::move(reply));
  });
  add("Configure", RunOn::kOwnThread,
      TypedHandler<pb::ConfigurePsRequest>(
          [this](const auto& request) { return Configure(request); }));
  add("Assign", RunOn::kTransportThread, [this](std::shared_ptr<ServerCall> call, Buffer bytes) {
    pb::AssignRequest request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return call->Finish(
          absl::InvalidArgumentError("the request does not parse as an AssignRequest"));
    }
    Assign(request, [call](absl::StatusOr<pb::AssignReply> reply) {
      if (!reply.ok()) return call->Finish(reply.status());
      call->Finish(absl::OkStatus(), Buffer(reply->SerializeAsString()));
    });
  });
  add("CommitRound", RunOn::kOwnThread,
      TypedHandler<pb::CommitRoundRequest>(
          [this](const auto& request) { return CommitRound(request); }));
  add("Fence", RunOn::kOwnThread,
      TypedHandler<pb::FenceRequest>([this](const auto& request) { return Fence(request); }));
  add("Save", RunOn::kOwnThread,
      TypedHandler<pb::SaveRequest>([this](const auto& request) { return Save(request); }));
  add("Restore", RunOn::kOwnThread,
      TypedHandler<pb::RestoreRequest>([this](const auto& request) { return Restore(request); }));
  add("LoadView", RunOn::kOwnThread,
      TypedHandler<pb::LoadViewRequest>([this](const auto& request) { return LoadView(request); }));
  add("DropView", RunOn::kOwnThread,
      TypedHandler<pb::DropViewRequest>([this](const auto& request) { return DropView(request); }));
  add("GetStats", RunOn::kOwnThread,
      TypedHandler<pb::PsStatsRequest>([this](const auto& request) { return GetStats(request); }));
  AddTelemetryMethod(*methods, "muster.PsServer", options_.telemetry);
}

}  // namespace mu
