#include "common/rpc/health.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/typed.h"
#include "proto/health.pb.h"

namespace mu {

absl::StatusOr<bool> IsServing(const Health& health, const std::string& service) {
  if (service == kReady) return health.ready;
  if (service == kLive) return health.live;
  return absl::NotFoundError(
      absl::StrCat("there is no service '", service, "'; ask for \"\" (is it ready) or \"live\""));
}

void AddHealthMethod(MethodTable* methods, std::function<Health()> health) {
  methods->AddUnary(
      kHealthMethod, RunOn::kOwnThread,
      TypedHandler<pb::HealthRequest>([health = std::move(health)](const pb::HealthRequest& request)
                                          -> absl::StatusOr<pb::HealthReply> {
        MU_ASSIGN_OR_RETURN(const bool serving, IsServing(health(), request.service()));
        pb::HealthReply reply;
        reply.set_status(serving ? pb::HealthReply::SERVING : pb::HealthReply::NOT_SERVING);
        return reply;
      }));
}

absl::Status CheckHealth(Channel& channel, const std::string& service, absl::Duration timeout) {
  pb::HealthRequest request;
  request.set_service(service);
  MU_ASSIGN_OR_RETURN(const auto reply,
                      Call<pb::HealthReply>(channel, kHealthMethod, request, {.timeout = timeout}));
  if (reply.status() == pb::HealthReply::SERVING) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(service == kLive ? "it is stuck" : "it is up and not ready", " (",
                   pb::HealthReply::ServingStatus_Name(reply.status()), ")"));
}

}  // namespace mu
