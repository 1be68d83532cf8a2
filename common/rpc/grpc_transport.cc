// The transport on gRPC (callback API, generic services), see common/rpc/transport.h.
#include <grpc/support/log.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <cstring>
#include <mutex>
#include <string>

#include "absl/synchronization/mutex.h"
#include "common/base/mutex.h"
#include "common/obs/log.h"
#include "common/obs/tls_refusals.h"
#include "common/rpc/grpc_bytes.h"
#include "common/rpc/grpc_client.h"
#include "common/rpc/grpc_credentials.h"
#include "common/rpc/grpc_server.h"
#include "common/rpc/transport.h"

namespace mu {
namespace {

// gRPC's own log is for its developers; what matters comes back as a status. Its errors are at hand
// at DEBUG, and its last words always: an assertion says what failed and aborts. Of a handshake
// that fails the end that accepts connections hears nowhere else.
void LogOfGrpc(gpr_log_func_args* args) {
  if (std::strncmp(args->message, "Handshake failed", 16) == 0)
    return ReportRefusedByTls("rpc", args->message);
  if (args->severity != GPR_LOG_SEVERITY_ERROR) return;
  const bool fatal = std::strncmp(args->message, "assertion failed", 16) == 0;
  const LogSeverity severity = fatal ? LogSeverity::ERROR : LogSeverity::DEBUG;
  if (LogEnabled(severity))
    LogLine(severity, args->file, args->line, std::string("gRPC: ") + args->message);
}

// gRPC 1.51 serves all callbacks of a process from one queue that it ends with the last channel or
// server and begins anew with the next one; ending it races with its threads ("assertion failed:
// prior > 0"). A channel that has made one call and is never destroyed keeps the queue for as long
// as the process lives. The call is cancelled before it leaves.
void KeepCallbackQueue() {
  auto* const stub =
      new grpc::GenericStub(grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()));
  [[maybe_unused]] static const grpc::
      GenericStub* volatile kept;  // reachable, so no leak; volatile, or it is optimised away
  kept = stub;
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request = ToByteBuffer(Buffer());
    grpc::ByteBuffer response;
    Notification done;
  } call;
  call.context.TryCancel();
  stub->UnaryCall(&call.context, "/muster.None/None", grpc::StubOptions(), &call.request,
                  &call.response, [&call](grpc::Status) { call.done.Notify(); });
  call.done.Wait();
}

// gRPC's locks are Abseil's. Debian builds Abseil without NDEBUG, so each of them looks for
// deadlocks in a graph of all locks of the process, below one spin lock. That is for who writes
// gRPC.
void DoNotLookForDeadlocks() {
#ifdef NDEBUG
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
}

class GrpcTransport final : public Transport {
 public:
  explicit GrpcTransport(const TransportOptions& options)
      : options_(options), credentials_(options.tls) {
    static std::once_flag once;
    std::call_once(once, [] {
      gpr_set_log_function(LogOfGrpc);
      DoNotLookForDeadlocks();
      KeepCallbackQueue();
    });
  }
  ~GrpcTransport() override { active_->CloseAndWait(); }

  absl::StatusOr<std::unique_ptr<RpcServer>> Listen(const std::string& address,
                                                    MethodTable methods) override {
    return GrpcServer::Listen(address, std::move(methods), options_, credentials_);
  }
  std::shared_ptr<Channel> Connect(const std::string& address, pb::Role callee) override {
    return std::make_shared<GrpcChannel>(GrpcPeer{address, callee, options_.tls}, options_,
                                         credentials_, active_);
  }

 private:
  const TransportOptions options_;
  const GrpcCredentials credentials_;
  const std::shared_ptr<GrpcActiveCalls> active_ = std::make_shared<GrpcActiveCalls>();
};

}  // namespace

std::unique_ptr<Transport> NewGrpcTransport(const TransportOptions& options) {
  return std::make_unique<GrpcTransport>(options);
}

}  // namespace mu
