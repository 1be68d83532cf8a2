// The coordinator's calls to the parameter servers: to all of them at once, each tried again while
// it is the machine's fault. They block; use from a thread that may. Thread safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/client/ps_client.h"
#include "common/tensor/tensor.h"
#include "proto/psserver.pb.h"

namespace mu {

// Errors: those of the servers' handlers (psserver/server.h); UNAVAILABLE with {ERROR_MACHINE,
// ROLE_PSSERVER, index} if a server stays out of reach for the policy's total_timeout; NOT_FOUND
// for a name without variable.
class PsAdmin {
 public:
  // Servers and routing are those that `client` has when a call is made.
  explicit PsAdmin(PsClient* client) : client_(client) {}

  // Sends client's routing to its servers.
  absl::Status Configure(const muster::RequestContext& context);
  // No push of a function below context.low_water is or will be applied when this has returned.
  absl::Status Fence(const muster::RequestContext& context);
  // Every server writes "PREFIX-INDEX.safetensors" into `directory`, which all of them reach. By
  // server.
  absl::StatusOr<std::vector<muster::CheckpointFileProto>> Save(
      const muster::RequestContext& context, const std::string& directory,
      const std::string& prefix = "ps");
  // Every server loads its partitions from `files`; none: initial values. Rows loaded by all.
  absl::StatusOr<uint64_t> Restore(const muster::RequestContext& context,
                                   const std::string& directory,
                                   const std::vector<muster::CheckpointFileProto>& files);
  absl::StatusOr<std::vector<muster::PsStatsReply>> Stats(const muster::RequestContext& context);
  absl::StatusOr<std::vector<muster::TelemetryReply>> Telemetry(
      const muster::TelemetryRequest& request);

  absl::StatusOr<Tensor> ReadVariable(const muster::RequestContext& context,
                                      const std::string& name);
  // Once for each `place` (among the functions, from 1): a call again gives its value to those
  // partitions that have not had it. INVALID_ARGUMENT if type or shape differ from the variable's.
  absl::Status AssignVariable(const muster::RequestContext& context, FunctionId place,
                              const std::string& name, const Tensor& value);

  // How long each try of Save and Restore may take; the policy's timeouts are for the short calls.
  // Default: as long as it takes, since nobody knows how large the state and how slow the disk is.
  // A server that is gone ends them by the policy's total_timeout; one that hangs does not.
  void set_file_timeout(absl::Duration timeout) { file_timeout_ = timeout; }

 private:
  PsClient* const client_;
  absl::Duration file_timeout_ = absl::InfiniteDuration();
};

}  // namespace mu
