// Health as gRPC has it (grpc.health.v1), for probes.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "common/rpc/transport.h"

namespace mu {

inline constexpr char kHealthMethod[] = "/grpc.health.v1.Health/Check";
// Services of a process: what it is there for, and whether it need not be started again.
inline constexpr char kReady[] = "";
inline constexpr char kLive[] = "live";

struct Health {
  bool ready = false;
  bool live = true;
};

// `health` may be called from any thread and does not block for long.
void AddHealthMethod(MethodTable* methods, std::function<Health()> health);
// What a service of that name is to be told; NOT_FOUND for other names.
absl::StatusOr<bool> IsServing(const Health& health, const std::string& service);
// The answer's other end: asks whoever listens there. OK; UNAVAILABLE if it says that it is not, or
// what the call ended with.
absl::Status CheckHealth(Channel& channel, const std::string& service, absl::Duration timeout);

}  // namespace mu
