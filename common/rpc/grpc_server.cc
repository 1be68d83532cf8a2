#include "common/rpc/grpc_server.h"

#include <grpcpp/server_builder.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/host_port.h"
#include "common/env/unique_fd.h"
#include "common/obs/telemetry.h"
#include "common/obs/tls_refusals.h"
#include "common/rpc/access.h"
#include "common/rpc/grpc_options.h"
#include "common/rpc/grpc_server_call.h"
#include "common/rpc/health.h"

namespace mu {
namespace {

// gRPC does not say why it could not listen, so try what it tried.
std::string WhyNotBound(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) return absl::StrCat(gai_strerror(error), "; give a host that this machine has");
  std::string why = "the address could not be bound";
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const UniqueFd fd(
        socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol));
    const int on = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd.valid() && bind(fd.get(), address->ai_addr, address->ai_addrlen) == 0) continue;
    if (errno == EADDRINUSE) {
      why = absl::StrCat("port ", port,
                         " is in use; stop what listens there or choose another port (0: any)");
    } else if (errno == EACCES) {
      why = absl::StrCat("port ", port, " needs privileges; choose one from 1024 on (0: any)");
    } else {
      why = absl::StrCat(std::strerror(errno), "; give a host that this machine has");
    }
    break;
  }
  freeaddrinfo(found);
  return why;
}

// Of "ipv4:10.0.0.7:41234" or "ipv6:[::1]:41234" without the port, which every connection has anew.
std::string HostOfPeer(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

// Counts calls that no method sees, by the reason.
Counter* Refused(const char* reason) {
  return Telemetry::Process().counter(
      "rpc.server.refused", "Calls refused before their method saw them", {{"reason", reason}});
}
constexpr char kRole[] = "role";
constexpr char kOpenCalls[] = "open_calls";
constexpr char kOpenCallsOfHost[] = "open_calls_of_host";
constexpr char kMethod[] = "method";

// The DNS names of its certificate.
std::vector<std::string> NamesOfCaller(const grpc::GenericCallbackServerContext& context) {
  std::vector<std::string> names;
  for (const grpc::string_ref& name :
       context.auth_context()->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME))
    names.emplace_back(name.data(), name.size());
  return names;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> GrpcServer::Listen(const std::string& address,
                                                              MethodTable methods,
                                                              const TransportOptions& options,
                                                              const GrpcCredentials& credentials) {
  auto split = SplitHostPort(address);
  if (!split.ok()) return split.status();
  std::unique_ptr<GrpcServer> server(new GrpcServer(std::move(methods), credentials.secure()));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, credentials.ForServer(), &port);
  builder.RegisterCallbackGenericService(&server->service_);
  SetServerOptions(&builder, options);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", WhyNotBound(split->host, split->port)));
  }
  server->address_ = absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
  // Known from the start, so that a rate sees the first one.
  for (const char* reason : {kRole, kOpenCalls, kOpenCallsOfHost, kMethod}) Refused(reason);
  if (credentials.secure()) RefusedByTls("rpc");
  return std::unique_ptr<RpcServer>(std::move(server));
}

grpc::ServerGenericBidiReactor* GrpcServer::Service::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const MethodTable::Method* method = server_->methods_.Find(context->method());
  std::optional<std::vector<std::string>> names;
  if (server_->secure_) names = NamesOfCaller(*context);
  const absl::Status access =
      names.has_value() ? CheckAccess(context->method(), *names) : absl::OkStatus();
  auto call =
      std::make_shared<GrpcServerCall>(server_, method, context->method(), std::move(names));
  const absl::Status admitted =
      server_->Admit(call, context->method(), HostOfPeer(context->peer()));
  if (!admitted.ok()) {
    call->Answer(admitted);
  } else if (!access.ok()) {
    Refused(kRole)->Add();
    ReportRefusedRole(access, context->peer());
    call->Answer(access);
  } else if (method == nullptr) {
    Refused(kMethod)->Add();
    call->Answer(
        absl::UnimplementedError("there is no method " + context->method() + " at this address"));
  } else {
    call->Start();
  }
  return call.get();
}

absl::Status GrpcServer::Admit(const std::shared_ptr<GrpcServerCall>& call,
                               const std::string& method, std::string host) {
  const char* reason = nullptr;
  std::string why;
  {
    MutexLock lock(&mutex_);
    size_t& of_host = calls_of_host_[host];
    if (stopping_) {
      why = "the server is shutting down";
    } else if (method == kHealthMethod) {
      // Told in any case.
    } else if (calls_.size() >= kMostOpenCalls) {
      reason = kOpenCalls;
      why = absl::StrCat("this process has ", kMostOpenCalls, " calls open and takes no more");
    } else if (of_host >= kMostOpenCallsOfHost) {
      reason = kOpenCallsOfHost;
      why = absl::StrCat("this process has ", kMostOpenCallsOfHost, " calls open of callers at ",
                         host, " and takes no more of them");
    }
    ++of_host;
    calls_.try_emplace(call.get(), OpenCall{call, std::move(host)});
  }
  if (reason != nullptr) Refused(reason)->Add();
  return why.empty() ? absl::OkStatus() : absl::UnavailableError(why);
}

void GrpcServer::Dispatch(std::shared_ptr<GrpcServerCall> call, Buffer request) {
  {
    MutexLock lock(&mutex_);
    // Shutdown has answered, or is about to answer, every call.
    if (stopping_) return;
    ++running_;
  }
  if (call->method().run_on == RunOn::kTransportThread)
    return Run(std::move(call), std::move(request));
  pool_.Post([this, call = std::move(call), request = std::move(request)]() mutable {
    Run(std::move(call), std::move(request));
  });
}

void GrpcServer::Run(std::shared_ptr<GrpcServerCall> call, Buffer request) {
  {
    const std::shared_ptr<GrpcServerCall> held = std::move(call);
    held->method().handler(held->NewHandle(), std::move(request));
    if (held->method().converses) held->ReadOn();
  }
  MutexLock lock(&mutex_);
  --running_;
  changed_.SignalAll();
}

void GrpcServer::Remove(GrpcServerCall* call) {
  std::shared_ptr<GrpcServerCall> last;  // destroyed without the lock
  MutexLock lock(&mutex_);
  const auto it = calls_.find(call);
  last = std::move(it->second.call);
  const auto of_host = calls_of_host_.find(it->second.host);
  if (--of_host->second == 0) calls_of_host_.erase(of_host);
  calls_.erase(it);
  changed_.SignalAll();
}

void GrpcServer::Shutdown() {
  std::vector<std::shared_ptr<GrpcServerCall>> calls;
  {
    MutexLock lock(&mutex_);
    if (stopping_ || server_ == nullptr) {
      while (!stopped_ && server_ != nullptr) changed_.Wait(&mutex_);
      return;
    }
    stopping_ = true;
    for (const auto& [key, open] : calls_) calls.push_back(open.call);
  }
  for (const auto& call : calls) call->Abort();
  calls.clear();
  // The answers have a moment to leave; then whoever does not take them is cut off.
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
  MutexLock lock(&mutex_);
  while (running_ > 0 || !calls_.empty()) changed_.Wait(&mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

}  // namespace mu
