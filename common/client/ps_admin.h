// The coordinator's calls to the parameter servers: to all of them at once, each tried again while
// it is the machine's fault. They block; use from a thread that may. Thread safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/client/ps_client.h"
#include "common/client/value_pieces.h"
#include "common/tensor/tensor.h"
#include "proto/psserver.pb.h"

namespace mu {

// Errors: those of the servers' handlers (psserver/server.h); UNAVAILABLE with {ERROR_MACHINE,
// ROLE_PSSERVER, index} if a server stays out of reach for the policy's total_timeout; NOT_FOUND
// for a name without variable or table.
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
  // Every server loads the values of its partitions from `files` beside its state, to be read by
  // pulls that name the view. Bytes that all of them hold for it.
  absl::StatusOr<uint64_t> LoadView(const muster::RequestContext& context, uint64_t view,
                                    const std::string& directory,
                                    const std::vector<muster::CheckpointFileProto>& files);
  // The view is not loaded again under this number.
  absl::Status DropView(const muster::RequestContext& context, uint64_t view);
  absl::StatusOr<std::vector<muster::PsStatsReply>> Stats(const muster::RequestContext& context);
  absl::StatusOr<std::vector<muster::TelemetryReply>> Telemetry(
      const muster::TelemetryRequest& request);

  // The next rows of a table that exist, of one partition and in the order of their ids; at most
  // `most`, perhaps none. Each row is whole; rows that change meanwhile may be of different
  // moments.
  struct TablePosition {
    uint32_t partition = 0;
    uint64_t row = 0;
    bool end = false;  // all partitions were looked at
  };
  struct TableRows {
    std::vector<int64_t> ids;
    std::vector<float> values;  // [ids.size(), dim]
  };
  // `position` stays where it was after an error.
  absl::StatusOr<TableRows> Scan(const muster::RequestContext& context, const std::string& table,
                                 uint32_t most, TablePosition* position);

  // With a pull for each `piece_bytes` of it; rows that change meanwhile may be of different
  // moments.
  absl::StatusOr<Tensor> ReadVariable(const muster::RequestContext& context,
                                      const std::string& name,
                                      uint64_t piece_bytes = kValuePieceBytes);
  // Once for each `place` (among the functions, from 1): a call again gives its value to those
  // partitions that have not had it. INVALID_ARGUMENT if type or shape differ from the variable's.
  absl::Status AssignVariable(const muster::RequestContext& context, FunctionId place,
                              const std::string& name, const Tensor& value);

  // The same for some rows, each once: indices on axis 0 of a variable, or ids of a table.
  // `value`: their values, in this order. OUT_OF_RANGE for rows that there are not.
  absl::Status AssignRows(const muster::RequestContext& context, FunctionId place,
                          const std::string& name, bool table, absl::Span<const int64_t> rows,
                          const Tensor& value);
  // The errors with which these two refuse a value, without a call: of a wrong type or shape, rows
  // that there are not or that come twice, NaN and infinity.
  absl::Status CheckValue(const std::string& name, const Tensor& value);
  absl::Status CheckRows(const std::string& name, bool table, absl::Span<const int64_t> rows,
                         const Tensor& value);

  // How long each try of Save, Restore and LoadView may take; the policy's timeouts are for the
  // short calls. Default: as long as it takes, since nobody knows how large the state and how slow
  // the disk is. A server that is gone ends them by the policy's total_timeout; one that hangs does
  // not.
  void set_file_timeout(absl::Duration timeout) { file_timeout_ = timeout; }

 private:
  PsClient* const client_;
  absl::Duration file_timeout_ = absl::InfiniteDuration();
};

}  // namespace mu
