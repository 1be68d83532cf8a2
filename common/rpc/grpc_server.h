// The server side of the gRPC transport: a generic callback service that answers by a MethodTable.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/rpc/grpc_credentials.h"
#include "common/rpc/thread_pool.h"
#include "common/rpc/transport.h"

namespace mu {

class GrpcServerCall;

class GrpcServer final : public RpcServer {
 public:
  // Calls that may be open at a time; more are refused with UNAVAILABLE, so that callers try again.
  // A thousand workers have a few each. Health goes on being told.
  static constexpr size_t kMostOpenCalls = 10'000;
  // Of them, those of callers at one address, which so leave room for the others.
  static constexpr size_t kMostOpenCallsOfHost = kMostOpenCalls / 2;

  static absl::StatusOr<std::unique_ptr<RpcServer>> Listen(const std::string& address,
                                                           MethodTable methods,
                                                           const TransportOptions& options,
                                                           const GrpcCredentials& credentials);
  ~GrpcServer() override { Shutdown(); }

  std::string address() const override { return address_; }
  void Shutdown() override;

 private:
  friend class GrpcServerCall;
  class Service : public grpc::CallbackGenericService {
   public:
    explicit Service(GrpcServer* server) : server_(server) {}
    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override;

   private:
    GrpcServer* const server_;
  };

  GrpcServer(MethodTable methods, bool secure)
      : methods_(std::move(methods)), secure_(secure), service_(this) {}

  // Runs the handler, here or on the pool. Refuses if the server is shutting down.
  void Dispatch(std::shared_ptr<GrpcServerCall> call, Buffer request);
  void Run(std::shared_ptr<GrpcServerCall> call, Buffer request);
  // From then on the call counts as open. What refuses it, OK if nothing does; `host` is the
  // caller's.
  absl::Status Admit(const std::shared_ptr<GrpcServerCall>& call, const std::string& method,
                     std::string host);
  void Remove(GrpcServerCall* call);

  // Constant after Listen.
  const MethodTable methods_;
  const bool secure_;
  Service service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // handlers
  struct OpenCall {
    std::shared_ptr<GrpcServerCall> call;
    std::string host;  // the caller's
  };
  // Calls that gRPC has not finished with, and how many of them each host has.
  absl::flat_hash_map<GrpcServerCall*, OpenCall> calls_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, size_t> calls_of_host_ ABSL_GUARDED_BY(mutex_);

  ThreadPool pool_{4096};  // last: its threads use the above
};

}  // namespace mu
