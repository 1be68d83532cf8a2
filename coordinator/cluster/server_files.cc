#include "coordinator/cluster/server_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/client/membership.h"

namespace mu {
namespace {

// Of one try. Who does not answer at all is found out by its heartbeats, and the call interrupted.
constexpr absl::Duration kTimeout = absl::Minutes(30);

absl::Status GivenUp(const char* method) {
  return absl::CancelledError(absl::StrCat(method, " was given up: a server was lost meanwhile"));
}

}  // namespace

template <typename Reply, typename Make>
absl::StatusOr<std::vector<Reply>> ServerFiles::CallAll(const char* method, uint64_t interruptions,
                                                        const Make& make) {
  const auto view = client_->view();
  if (view == nullptr)
    return absl::FailedPreconditionError("the routing to the parameter servers is not known yet");
  RetryPolicy policy = client_->policy();
  policy.call_timeout = policy.total_timeout = kTimeout;
  std::vector<PsCall> calls;
  for (size_t s = 0; s < view->channels.size(); ++s) {
    auto request = make(s, view->routing->servers()[s].index());
    calls.push_back({view->routing->servers()[s].index(), view->channels[s],
                     absl::StrCat("/muster.PsServer/", method),
                     Buffer(request.SerializeAsString())});
  }
  std::vector<Reply> replies(calls.size());
  PsCallGroup group;
  {
    MutexLock lock(&mutex_);
    if (interruptions_ != interruptions) return GivenUp(method);
    under_way_.insert(&group);
  }
  const absl::Status status =
      group.Run(std::move(calls), policy, [&](size_t call, const Buffer& bytes) -> absl::Status {
        if (replies[call].ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
          return absl::OkStatus();
        return absl::InternalError(
            absl::StrCat("a parameter server's answer to ", method, " does not parse"));
      });
  {
    MutexLock lock(&mutex_);
    under_way_.erase(&group);
  }
  if (absl::IsCancelled(status)) return GivenUp(method);
  MU_RETURN_IF_ERROR(status);
  return replies;
}

absl::Status ServerFiles::Configure(const pb::RequestContext& context, uint64_t interruptions) {
  const auto view = client_->view();
  if (view == nullptr)
    return absl::FailedPreconditionError("the routing to the parameter servers is not known yet");
  return CallAll<pb::ConfigurePsReply>("Configure", interruptions,
                                       [&](size_t, uint32_t index) {
                                         pb::ConfigurePsRequest request;
                                         *request.mutable_context() = context;
                                         request.set_index(index);
                                         *request.mutable_routing() = view->routing->proto();
                                         return request;
                                       })
      .status();
}

absl::StatusOr<std::vector<pb::SaveReply>> ServerFiles::Save(const pb::RequestContext& context,
                                                             const std::string& directory,
                                                             uint64_t interruptions) {
  const uint64_t attempt = RandomIdentity();
  return CallAll<pb::SaveReply>("Save", interruptions, [&](size_t, uint32_t index) {
    pb::SaveRequest request;
    *request.mutable_context() = context;
    request.set_directory(directory);
    request.set_file(absl::StrCat("ps-", index, ".safetensors"));
    request.set_attempt(attempt);
    return request;
  });
}

absl::StatusOr<std::vector<pb::RestoreReply>> ServerFiles::Restore(
    const pb::RequestContext& context, const std::string& directory,
    const std::vector<pb::CheckpointFileProto>& files, const std::vector<bool>& keep,
    uint64_t interruptions) {
  return CallAll<pb::RestoreReply>("Restore", interruptions, [&](size_t s, uint32_t) {
    pb::RestoreRequest request;
    *request.mutable_context() = context;
    if (s < keep.size() && keep[s]) {
      request.set_keep_state(true);
      return request;
    }
    request.set_directory(directory);
    for (const pb::CheckpointFileProto& file : files) *request.add_files() = file;
    return request;
  });
}

uint64_t ServerFiles::interruptions() const {
  MutexLock lock(&mutex_);
  return interruptions_;
}

void ServerFiles::Interrupt() {
  MutexLock lock(&mutex_);
  ++interruptions_;
  for (PsCallGroup* group : under_way_) group->Cancel();
}

}  // namespace mu
