// The parameter servers as a worker sees them.
//
// PsClient holds what all steps of a process share: the routing and a channel to each server.
// Thread safe. PsSession is one function's access (ParameterAccess), used by one thread at a time;
// only Cancel may come from another.
//
//   PsClient client([transport](const std::string& address) {
//     return transport->Connect(address, pb::ROLE_PSSERVER);
//   });
//   MU_RETURN_IF_ERROR(client.SetRouting(routing));
//   PsSession session(&client, {.context = context, .function = 7});
//   session.BeginStep(0);  ... executor: session.Pull(...), session.Push(...) ...
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/client/product_calls.h"
#include "common/client/ps_calls.h"
#include "common/rpc/transport.h"
#include "common/sharding/parameter_access.h"
#include "common/sharding/routing.h"
#include "proto/coordinator.pb.h"
#include "proto/psserver.pb.h"
#include "proto/staleness.pb.h"

namespace mu {

class PsClient {
 public:
  using Connect = std::function<std::shared_ptr<Channel>(const std::string& address)>;
  // `most_request_bytes`: what a server takes in one message.
  explicit PsClient(
      Connect connect, RetryPolicy policy = {},
      uint64_t most_request_bytes = static_cast<uint64_t>(TransportOptions().max_message_bytes))
      : connect_(std::move(connect)), policy_(policy), most_request_bytes_(most_request_bytes) {}

  // Takes the routing if its version is newer than what is here (or the first). INVALID_ARGUMENT if
  // it is not sane.
  absl::Status SetRouting(const muster::RoutingProto& routing);
  void SetRouting(std::shared_ptr<const Routing> routing);
  // The routing and the channels of its servers, in the order of routing->servers().
  struct View {
    std::shared_ptr<const Routing> routing;
    std::vector<std::shared_ptr<Channel>> channels;
  };
  std::shared_ptr<const View> view() const;  // nullptr before SetRouting
  const RetryPolicy& policy() const { return policy_; }
  uint64_t most_request_bytes() const { return most_request_bytes_; }

 private:
  const Connect connect_;
  const RetryPolicy policy_;
  const uint64_t most_request_bytes_;
  mutable Mutex mutex_;
  std::shared_ptr<const View> view_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::shared_ptr<Channel>> channels_
      ABSL_GUARDED_BY(mutex_);  // by address and incarnation
};

struct PsSessionOptions {
  muster::RequestContext context;
  uint64_t function = 0;
  bool read_only = false;  // pulls create no rows; pushes are refused
  // Pulls read the values of this view of a checkpoint, create no rows and say no clocks; pushes
  // are refused. 0: the current values.
  uint64_t view = 0;
  float rate_scale = 1;   // of the learning rates of pushes
  uint64_t job_step = 0;  // of pushes: the step's place in the job, from 1; 0: not known
  // Of pushes that contribute to a synchronous round: the round, and how many contributions a
  // server keeps of one. 0: pushes are applied as they come.
  uint64_t round = 0;
  uint32_t most_contributions = 0;
  // What servers do about gradients of values that others have changed meanwhile; null: nothing,
  // and nobody counts. Outlives the function.
  const muster::StalenessProto* staleness = nullptr;
  ProductLimits products;  // of Multiply
};

class PsSession final : public ParameterAccess {
 public:
  PsSession(PsClient* client, PsSessionOptions options);
  ~PsSession() override;

  // What follows belongs to this step. A session may be given new options between functions to keep
  // its buffers.
  void BeginStep(uint32_t step);
  void BeginFunction(PsSessionOptions options);
  // What is pushed from now on was computed from what is pulled from now on.
  void ForgetClocks() { clocks_.clear(); }

  // INVALID_ARGUMENT for unknown variables and tables, OUT_OF_RANGE (ERROR_USER) for ids that a
  // table does not have, INVALID_ARGUMENT (ERROR_USER) for a push that does not fit into a message,
  // all before anything is sent; what the servers refuse; UNAVAILABLE with {ERROR_MACHINE,
  // ROLE_PSSERVER, index} if a server stays out of reach; CANCELLED.
  absl::Status Pull(absl::Span<const VariableRead> variables,
                    absl::Span<const RowsRead> rows) override;
  // Products of several servers are added up in the order of the variable's partitions, so the
  // bits are the same for any number of servers. What takes long is several calls, one after the
  // other, so others' updates may come in between; each has, as pulls and pushes have, the
  // policy's timeouts, and more for what is computed and what travels.
  absl::Status Multiply(absl::Span<const ProductRead> products) override;
  absl::Status Push(absl::Span<const VariableWrite> variables,
                    absl::Span<const RowsWrite> rows) override;

  // Whether every server that the last push went to had applied it before. False if it went to
  // none.
  bool push_repeated() const { return push_repeated_; }
  // How many partitions the last push changed, by the server's index; a repeat counts what the
  // first one changed.
  const std::vector<uint32_t>& push_updates() const { return push_updates_; }
  // How many partitions it left alone, since the checkpoint that they came from contained it;
  // empty: none.
  const std::vector<uint32_t>& push_inherited() const { return push_inherited_; }
  // By how many updates its latest gradient was, on any server; nullopt: not known.
  std::optional<uint32_t> push_late() const { return push_late_; }

  // A Pull or Push under way, and those to come until BeginFunction, return CANCELLED. Thread safe.
  void Cancel();

 private:
  struct Scratch;
  // For calls in which a server computes so much, and which move so much.
  RetryPolicy NextPolicy(int64_t multiply_adds, size_t bytes);
  // A pull of the servers that it needs. `bytes`: of one server's reply.
  absl::Status PullFrom(const PsClient::View& view, int64_t multiply_adds, size_t bytes,
                        const std::function<bool(size_t server)>& needs,
                        const std::function<Buffer(size_t server)>& frame,
                        const std::function<absl::Status(size_t server, const Buffer& reply,
                                                         muster::PullReply* header)>& take);

  PsClient* const client_;
  PsSessionOptions options_;
  uint32_t step_ = 0;
  bool push_repeated_ = false;
  std::vector<uint32_t> push_updates_, push_inherited_;
  std::optional<uint32_t> push_late_;
  std::map<uint32_t, muster::ClocksProto> clocks_;  // of what was pulled, by the server's index
  uint64_t calls_ = 0;
  PsCallGroup group_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace mu
