#include "coordinator/cluster/server_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/client/known_view.h"
#include "common/client/membership.h"
#include "common/client/view_requests.h"
#include "common/tensor/tensor.h"
#include "coordinator/core/deadlines.h"

namespace mu {
namespace {

const RetryPolicy kShortCalls = {.total_timeout = deadlines::kShortCalls};

}  // namespace

ServerCalls::ServerCalls(PsClient::Connect connect)
    : client_(std::move(connect), kShortCalls), admin_(&client_) {}

template <typename Reply, typename Make>
absl::StatusOr<std::vector<Reply>> ServerCalls::CallAll(const Call& call, const char* method,
                                                        const Make& make) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(client_));
  RetryPolicy policy = client_.policy();
  policy.call_timeout = absl::InfiniteDuration();
  policy.bound_tries = false;
  policy.total_timeout = deadlines::kLongCalls;
  std::vector<PsCall> calls;
  for (size_t s = 0; s < view->channels.size(); ++s) {
    auto request = make(s, view->routing->servers()[s].index());
    calls.push_back({view->routing->servers()[s].index(), view->channels[s],
                     absl::StrCat("/muster.PsServer/", method),
                     Buffer(request.SerializeAsString())});
  }
  std::vector<Reply> replies(calls.size());
  const absl::Status status = call.group->Run(
      std::move(calls), policy, [&](size_t index, const Buffer& bytes) -> absl::Status {
        if (replies[index].ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
          return absl::OkStatus();
        return absl::InternalError(
            absl::StrCat("a parameter server's answer to ", method, " does not parse"));
      });
  if (absl::IsCancelled(status))
    return absl::CancelledError(absl::StrCat(method, " was given up: a server was lost meanwhile"));
  MU_RETURN_IF_ERROR(status);
  return replies;
}

absl::Status ServerCalls::SendRouting(const Call& call, bool loads) {
  MU_RETURN_IF_ERROR(client_.SetRouting(*call.routing));
  return CallAll<pb::ConfigurePsReply>(
             call, "Configure",
             [&](size_t, uint32_t index) {
               pb::ConfigurePsRequest request;
               *request.mutable_context() = call.context;
               request.mutable_context()->set_generation(call.routing->generation());
               request.set_index(index);
               request.set_restore_follows(loads);
               *request.mutable_routing() = *call.routing;
               return request;
             })
      .status();
}

absl::Status ServerCalls::Configure(const Call& call) { return SendRouting(call, /*loads=*/false); }

absl::StatusOr<std::vector<pb::RestoreReply>> ServerCalls::Restore(const Call& call,
                                                                   const SavedState& from,
                                                                   const std::vector<bool>& keep) {
  MU_RETURN_IF_ERROR(SendRouting(call, /*loads=*/true));
  return CallAll<pb::RestoreReply>(call, "Restore", [&](size_t s, uint32_t) {
    pb::RestoreRequest request;
    *request.mutable_context() = call.context;
    request.mutable_context()->set_generation(call.routing->generation());
    if (s < keep.size() && keep[s]) {
      request.set_keep_state(true);
      return request;
    }
    request.set_directory(from.directory);
    for (const pb::CheckpointFileProto& file : from.files) *request.add_files() = file;
    if (from.take != nullptr) *request.mutable_take() = *from.take;
    return request;
  });
}

absl::StatusOr<std::vector<pb::SaveReply>> ServerCalls::Save(const Call& call,
                                                             const std::string& directory) {
  const uint64_t attempt = RandomIdentity();
  return CallAll<pb::SaveReply>(call, "Save", [&](size_t, uint32_t index) {
    pb::SaveRequest request;
    *request.mutable_context() = call.context;
    request.set_directory(directory);
    request.set_file(absl::StrCat("ps-", index, ".safetensors"));
    request.set_attempt(attempt);
    return request;
  });
}

absl::Status ServerCalls::LoadView(const Call& call, ViewId view, const SavedState& from) {
  const pb::LoadViewRequest request =
      ToLoadView(call.context, view.value(), from.directory, from.files);
  return CallAll<pb::LoadViewReply>(call, "LoadView", [&](size_t, uint32_t) { return request; })
      .status();
}

absl::Status ServerCalls::DropView(const Call& call, ViewId view) {
  const pb::DropViewRequest request = ToDropView(call.context, view.value());
  return CallAll<pb::DropViewReply>(call, "DropView", [&](size_t, uint32_t) { return request; })
      .status();
}

absl::StatusOr<std::vector<uint32_t>> ServerCalls::CommitRound(const Call& call,
                                                               const RoundSet& set) {
  MU_ASSIGN_OR_RETURN(const auto view, KnownView(client_));
  pb::CommitRoundRequest request;
  *request.mutable_context() = call.context;
  request.set_round(set.round);
  request.set_sum_rows(set.sum_rows);
  for (const RoundSet::Step& step : set.steps) {
    auto& contribution = *request.add_contributions();
    contribution.set_function(step.function.value());
    contribution.set_step(step.step);
    contribution.set_weight(step.weight);
  }
  const Buffer bytes(request.SerializeAsString());
  std::vector<PsCall> calls;
  for (size_t s = 0; s < view->channels.size(); ++s) {
    calls.push_back({view->routing->servers()[s].index(), view->channels[s],
                     "/muster.PsServer/CommitRound", bytes});
  }
  std::vector<uint32_t> updates(calls.size());
  MU_RETURN_IF_ERROR(call.group->Run(
      std::move(calls), client_.policy(), [&](size_t index, const Buffer& reply) -> absl::Status {
        pb::CommitRoundReply message;
        if (!message.ParseFromArray(reply.data(), static_cast<int>(reply.size())))
          return absl::InternalError("a parameter server's answer to CommitRound does not parse");
        updates[index] = message.updates();
        return absl::OkStatus();
      }));
  return updates;
}

std::map<uint32_t, absl::Status> ServerCalls::Fence(const pb::RequestContext& context,
                                                    const std::vector<uint32_t>& servers) {
  const auto view = client_.view();
  if (view == nullptr) return {};  // no server has been given anything yet
  pb::FenceRequest request;
  *request.mutable_context() = context;
  std::vector<PsCall> calls;
  for (size_t s = 0; s < view->channels.size(); ++s) {
    const uint32_t index = view->routing->servers()[s].index();
    if (std::find(servers.begin(), servers.end(), index) == servers.end()) continue;
    calls.push_back(
        {index, view->channels[s], "/muster.PsServer/Fence", Buffer(request.SerializeAsString())});
  }
  const auto run = [this](std::vector<PsCall> these) {
    return PsCallGroup().Run(std::move(these), client_.policy(),
                             [](size_t, const Buffer&) { return absl::OkStatus(); });
  };
  if (run(calls).ok()) return {};
  // Which of them has not confirmed?
  std::map<uint32_t, absl::Status> failed;
  for (const PsCall& call : calls) {
    if (const absl::Status status = run({call}); !status.ok()) failed[call.server_index] = status;
  }
  return failed;
}

absl::Status ServerCalls::Assign(const pb::RequestContext& context, FunctionId place,
                                 const Assignment& assignment) {
  MU_ASSIGN_OR_RETURN(const Tensor value, Tensor::FromProto(assignment.value));
  if (!assignment.table && assignment.rows.empty())
    return admin_.AssignVariable(context, place, assignment.variable, value);
  return admin_.AssignRows(context, place, assignment.variable, assignment.table, assignment.rows,
                           value);
}

}  // namespace mu
