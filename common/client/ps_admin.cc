#include "common/client/ps_admin.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/client/known_view.h"
#include "common/client/membership.h"
#include "common/client/view_requests.h"

namespace mu {
namespace {

// Calls `method` on every server of `view`; `make` gives the request for the server at a position.
// Replies by position.
template <typename Reply>
absl::StatusOr<std::vector<Reply>> CallAll(const PsClient::View& view, const RetryPolicy& policy,
                                           const char* method,
                                           const std::function<std::string(size_t server)>& make) {
  std::vector<PsCall> calls;
  for (size_t s = 0; s < view.channels.size(); ++s) {
    calls.push_back({view.routing->servers()[s].index(), view.channels[s],
                     absl::StrCat("/muster.PsServer/", method), Buffer(make(s))});
  }
  std::vector<Reply> replies(calls.size());
  PsCallGroup group;
  MU_RETURN_IF_ERROR(
      group.Run(std::move(calls), policy, [&](size_t call, const Buffer& bytes) -> absl::Status {
        if (replies[call].ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
          return absl::OkStatus();
        return absl::InternalError(
            absl::StrCat("a parameter server's answer to ", method, " does not parse"));
      }));
  return replies;
}

// A file takes its time, but a server that is gone is not waited for.
RetryPolicy WithTimeout(RetryPolicy policy, absl::Duration timeout) {
  policy.call_timeout = timeout;
  policy.bound_tries = false;
  return policy;
}

}  // namespace

absl::Status PsAdmin::Configure(const pb::RequestContext& context) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  return CallAll<pb::ConfigurePsReply>(*view, client_->policy(), "Configure",
                                       [&](size_t s) {
                                         pb::ConfigurePsRequest request;
                                         *request.mutable_context() = context;
                                         request.set_index(view->routing->servers()[s].index());
                                         *request.mutable_routing() = view->routing->proto();
                                         return request.SerializeAsString();
                                       })
      .status();
}

absl::Status PsAdmin::Fence(const pb::RequestContext& context) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  pb::FenceRequest request;
  *request.mutable_context() = context;
  return CallAll<pb::FenceReply>(*view, client_->policy(), "Fence",
                                 [&](size_t) { return request.SerializeAsString(); })
      .status();
}

absl::StatusOr<std::vector<pb::CheckpointFileProto>> PsAdmin::Save(
    const pb::RequestContext& context, const std::string& directory, const std::string& prefix) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  const uint64_t attempt = RandomIdentity();
  MU_ASSIGN_OR_RETURN(
      std::vector<pb::SaveReply> replies,
      CallAll<pb::SaveReply>(
          *view, WithTimeout(client_->policy(), file_timeout_), "Save", [&](size_t s) {
            pb::SaveRequest request;
            *request.mutable_context() = context;
            request.set_directory(directory);
            request.set_file(
                absl::StrCat(prefix, "-", view->routing->servers()[s].index(), ".safetensors"));
            request.set_attempt(attempt);
            return request.SerializeAsString();
          }));
  std::vector<pb::CheckpointFileProto> files;
  for (pb::SaveReply& reply : replies) files.push_back(std::move(*reply.mutable_file()));
  return files;
}

absl::StatusOr<uint64_t> PsAdmin::Restore(const pb::RequestContext& context,
                                          const std::string& directory,
                                          const std::vector<pb::CheckpointFileProto>& files) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  pb::RestoreRequest request;
  *request.mutable_context() = context;
  request.set_directory(directory);
  for (const pb::CheckpointFileProto& file : files) *request.add_files() = file;
  MU_ASSIGN_OR_RETURN(
      const std::vector<pb::RestoreReply> replies,
      CallAll<pb::RestoreReply>(*view, WithTimeout(client_->policy(), file_timeout_), "Restore",
                                [&](size_t) { return request.SerializeAsString(); }));
  uint64_t rows = 0;
  for (const pb::RestoreReply& reply : replies) rows += reply.rows();
  return rows;
}

absl::StatusOr<uint64_t> PsAdmin::LoadView(const pb::RequestContext& context, uint64_t view,
                                           const std::string& directory,
                                           const std::vector<pb::CheckpointFileProto>& files) {
  MU_ASSIGN_OR_RETURN(const auto servers, KnownView(*client_));
  const pb::LoadViewRequest request = ToLoadView(context, view, directory, files);
  MU_ASSIGN_OR_RETURN(
      const std::vector<pb::LoadViewReply> replies,
      CallAll<pb::LoadViewReply>(*servers, WithTimeout(client_->policy(), file_timeout_),
                                 "LoadView", [&](size_t) { return request.SerializeAsString(); }));
  uint64_t bytes = 0;
  for (const pb::LoadViewReply& reply : replies) bytes += reply.bytes();
  return bytes;
}

absl::Status PsAdmin::DropView(const pb::RequestContext& context, uint64_t view) {
  MU_ASSIGN_OR_RETURN(const auto servers, KnownView(*client_));
  const pb::DropViewRequest request = ToDropView(context, view);
  return CallAll<pb::DropViewReply>(*servers, client_->policy(), "DropView",
                                    [&](size_t) { return request.SerializeAsString(); })
      .status();
}

absl::StatusOr<std::vector<pb::PsStatsReply>> PsAdmin::Stats(const pb::RequestContext& context) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  pb::PsStatsRequest request;
  *request.mutable_context() = context;
  return CallAll<pb::PsStatsReply>(*view, client_->policy(), "GetStats",
                                   [&](size_t) { return request.SerializeAsString(); });
}

absl::StatusOr<std::vector<pb::TelemetryReply>> PsAdmin::Telemetry(
    const pb::TelemetryRequest& request) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(*client_));
  return CallAll<pb::TelemetryReply>(*view, client_->policy(), "GetTelemetry",
                                     [&](size_t) { return request.SerializeAsString(); });
}

}  // namespace mu
