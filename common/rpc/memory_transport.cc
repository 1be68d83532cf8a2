// The transport within one process, see common/rpc/transport.h. Free of gRPC, and clean under TSan.
#include <utility>

#include "common/base/check.h"
#include "common/rpc/memory_call.h"
#include "common/rpc/memory_network.h"
#include "common/rpc/transport.h"

namespace mu {
namespace {

class MemoryChannel final : public Channel {
 public:
  MemoryChannel(std::string address, std::shared_ptr<MemoryNetwork> network)
      : address_(std::move(address)), network_(std::move(network)) {}
  ~MemoryChannel() override { network_->CancelCallsOf(this); }

  std::shared_ptr<ClientCall> Unary(const std::string& method, Buffer request, CallOptions options,
                                    std::function<void(absl::Status, Buffer)> done) override {
    return Start({address_, method, this, nullptr, nullptr, std::move(done)}, std::move(request),
                 options);
  }
  std::shared_ptr<ClientCall> ServerStream(const std::string& method, Buffer request,
                                           CallOptions options, std::function<void(Buffer)> message,
                                           std::function<void(absl::Status)> done) override {
    return Start(
        {address_, method, this, std::move(message), nullptr,
         [done = std::move(done)](absl::Status status, Buffer) { done(std::move(status)); }},
        std::move(request), options);
  }

  std::shared_ptr<ClientStream> Converse(const std::string& method, Conversation conversation,
                                         std::function<void(absl::Status)> done) override {
    Buffer first;
    MU_CHECK(conversation.next(&first));
    return Start(
        {address_, method, this, std::move(conversation.message), std::move(conversation.next),
         [done = std::move(done)](absl::Status status, Buffer) { done(std::move(status)); }},
        std::move(first), {.timeout = absl::InfiniteDuration()});
  }

 private:
  std::shared_ptr<MemoryCall> Start(MemoryCall::Spec spec, Buffer request, CallOptions options) {
    auto call = std::make_shared<MemoryCall>(network_, std::move(spec));
    network_->Start(call, std::move(request), options.timeout);
    return call;
  }

  const std::string address_;
  const std::shared_ptr<MemoryNetwork> network_;
};

class MemoryServer final : public RpcServer {
 public:
  MemoryServer(std::string address, std::shared_ptr<MemoryServerState> state,
               std::shared_ptr<MemoryNetwork> network)
      : address_(std::move(address)), state_(std::move(state)), network_(std::move(network)) {}
  ~MemoryServer() override { MemoryServer::Shutdown(); }

  std::string address() const override { return address_; }
  void Shutdown() override {
    {
      MutexLock lock(&mutex_);
      // A second time the address may be another's.
      if (!std::exchange(unbound_, true)) network_->Unbind(address_);
    }
    state_->Shutdown();
  }

 private:
  const std::string address_;
  const std::shared_ptr<MemoryServerState> state_;
  const std::shared_ptr<MemoryNetwork> network_;
  Mutex mutex_;
  bool unbound_ ABSL_GUARDED_BY(mutex_) = false;
};

class MemoryTransport final : public Transport {
 public:
  ~MemoryTransport() override { network_->CloseAndWait(); }

  absl::StatusOr<std::unique_ptr<RpcServer>> Listen(const std::string& address,
                                                    MethodTable methods) override {
    auto state = std::make_shared<MemoryServerState>(std::move(methods));
    auto bound = network_->Bind(address, state);
    if (!bound.ok()) return bound.status();
    return std::make_unique<MemoryServer>(*std::move(bound), std::move(state), network_);
  }
  std::shared_ptr<Channel> Connect(const std::string& address, pb::Role) override {
    return std::make_shared<MemoryChannel>(address, network_);
  }

 private:
  const std::shared_ptr<MemoryNetwork> network_ = std::make_shared<MemoryNetwork>();
};

}  // namespace

std::unique_ptr<Transport> NewMemoryTransport() { return std::make_unique<MemoryTransport>(); }

}  // namespace mu
