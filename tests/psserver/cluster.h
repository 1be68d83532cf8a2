// Parameter servers and their client in one process, over the transport in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/client/ps_admin.h"
#include "common/client/ps_client.h"
#include "common/rpc/transport.h"
#include "psserver/server.h"
#include "tests/psserver/model.h"

namespace mu::testing {

class PsCluster {
 public:
  static constexpr uint64_t kJob = 77;

  explicit PsCluster(uint32_t servers, pb::RoutingProto model, RetryPolicy policy = {},
                     PsServerOptions options = {})
      : transport_(NewMemoryTransport()),
        client_(
            [this](const std::string& address) {
              return transport_->Connect(address, pb::ROLE_PSSERVER);
            },
            policy),
        admin_(&client_),
        impatient_client_(
            [this](const std::string& address) {
              return transport_->Connect(address, pb::ROLE_PSSERVER);
            },
            {.total_timeout = absl::Milliseconds(100)}),
        impatient_admin_(&impatient_client_) {
    context_.set_job(kJob);
    context_.set_epoch(1);
    context_.set_generation(1);
    for (uint32_t s = 0; s < servers; ++s) {
      options.telemetry = &telemetry_;
      servers_.push_back(std::make_unique<PsServer>(options));
      MethodTable methods;
      servers_.back()->RegisterMethods(&methods);
      auto listening = transport_->Listen("memory:0", std::move(methods));
      MU_CHECK(listening.ok());
      listening_.push_back(*std::move(listening));
      model.mutable_servers(s)->set_address(listening_.back()->address());
    }
    MU_CHECK(client_.SetRouting(model).ok());
    MU_CHECK(impatient_client_.SetRouting(model).ok());
  }
  explicit PsCluster(uint32_t servers) : PsCluster(servers, SmallModel(servers)) {}
  ~PsCluster() { listening_.clear(); }

  absl::Status Configure() { return admin_.Configure(context_); }
  PsSession Session(uint64_t function = 1, bool read_only = false) {
    return PsSession(&client_, {.context = context_, .function = function, .read_only = read_only});
  }

  pb::RequestContext& context() { return context_; }
  PsClient& client() { return client_; }
  PsAdmin& admin() { return admin_; }
  // Soon gives up asking a server that does not serve: for calls that must not succeed. Those that
  // must, may take long on a busy machine.
  PsAdmin& impatient_admin() { return impatient_admin_; }
  PsServer& server(size_t s) { return *servers_[s]; }
  std::unique_ptr<RpcServer>& listening(size_t s) { return listening_[s]; }
  Transport& transport() { return *transport_; }

 private:
  Telemetry telemetry_;
  const std::unique_ptr<Transport> transport_;
  pb::RequestContext context_;
  std::vector<std::unique_ptr<PsServer>> servers_;
  std::vector<std::unique_ptr<RpcServer>> listening_;
  PsClient client_;
  PsAdmin admin_;
  PsClient impatient_client_;
  PsAdmin impatient_admin_;
};

}  // namespace mu::testing
