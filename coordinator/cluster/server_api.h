// What the coordinator says to parameter servers. Every call goes to all of them at once, is tried
// again while it is a machine's fault, and blocks: use it from a thread that may. Thread safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/client/ps_calls.h"
#include "coordinator/core/function_queue.h"
#include "proto/psserver.pb.h"

namespace mu {

class ServerApi {
 public:
  virtual ~ServerApi() = default;

  struct Call {
    pb::RequestContext context;
    // Where the servers are and what they hold; its generation is the context's.
    std::shared_ptr<const pb::RoutingProto> routing;
    // Ends the call, also before it has begun: CANCELLED. A server that does not answer is found
    // out by its heartbeats, not by a deadline.
    std::shared_ptr<PsCallGroup> group;
  };
  // What a restore loads. No files: initial values.
  struct SavedState {
    std::string directory;
    std::vector<pb::CheckpointFileProto> files;
    std::shared_ptr<const pb::TakenValuesProto> take;  // null: everything, under its own name
  };
  // The servers are given what the routing says.
  virtual absl::Status Configure(const Call& call) = 0;
  // Configures the servers, then each takes the routing's generation and loads its partitions, or
  // keeps what it has (keep[i]). By server.
  virtual absl::StatusOr<std::vector<pb::RestoreReply>> Restore(const Call& call,
                                                                const SavedState& from,
                                                                const std::vector<bool>& keep) = 0;
  // Every server writes "ps-INDEX.safetensors" into `directory`, which all of them reach. By
  // server.
  virtual absl::StatusOr<std::vector<pb::SaveReply>> Save(const Call& call,
                                                          const std::string& directory) = 0;
  // Asks these servers to refuse every push of a function below context.low_water in
  // context.generation, also those under way. The errors of those that have not confirmed it, by
  // server. Those that have been given no routing are not asked: they hold nothing.
  virtual std::map<uint32_t, absl::Status> Fence(const pb::RequestContext& context,
                                                 const std::vector<uint32_t>& servers) = 0;
  // Every server applies the round's set once, however often it is called. By server: how many
  // partitions it changed.
  virtual absl::StatusOr<std::vector<uint32_t>> CommitRound(const Call& call,
                                                            const RoundSet& set) = 0;
  // Every server loads its partitions of a checkpoint as a view, beside its state. A repeat does
  // nothing on those that have it.
  virtual absl::Status LoadView(const Call& call, ViewId view, const SavedState& from) = 0;
  virtual absl::Status DropView(const Call& call, ViewId view) = 0;
  // Once for each `place`, however often it is called.
  virtual absl::Status Assign(const pb::RequestContext& context, FunctionId place,
                              const Assignment& assignment) = 0;
};

}  // namespace mu
