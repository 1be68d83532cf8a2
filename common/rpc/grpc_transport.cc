// The transport on gRPC (callback API, generic services), see common/rpc/transport.h.
#include <grpc/support/log.h>

#include <mutex>

#include "common/obs/log.h"
#include "common/rpc/grpc_client.h"
#include "common/rpc/grpc_server.h"
#include "common/rpc/transport.h"

namespace mu {
namespace {

// gRPC's own log is for its developers; what matters comes back as a status. Its errors are at hand at DEBUG.
void LogOfGrpc(gpr_log_func_args* args) {
  if (args->severity == GPR_LOG_SEVERITY_ERROR && LogEnabled(LogSeverity::DEBUG)) {
    LogLine(LogSeverity::DEBUG, args->file, args->line, std::string("gRPC: ") + args->message);
  }
}

class GrpcTransport final : public Transport {
 public:
  explicit GrpcTransport(const TransportOptions& options) : options_(options) {
    static std::once_flag once;
    std::call_once(once, [] { gpr_set_log_function(LogOfGrpc); });
  }
  ~GrpcTransport() override { active_->CloseAndWait(); }

  absl::StatusOr<std::unique_ptr<RpcServer>> Listen(const std::string& address, MethodTable methods) override {
    return GrpcServer::Listen(address, std::move(methods), options_);
  }
  std::shared_ptr<Channel> Connect(const std::string& address) override {
    return std::make_shared<GrpcChannel>(address, options_, active_);
  }

 private:
  const TransportOptions options_;
  const std::shared_ptr<GrpcActiveCalls> active_ = std::make_shared<GrpcActiveCalls>();
};

}  // namespace

std::unique_ptr<Transport> NewGrpcTransport(const TransportOptions& options) {
  return std::make_unique<GrpcTransport>(options);
}

}  // namespace mu
