// The client side of the gRPC transport.
#pragma once

#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"
#include "common/rpc/grpc_credentials.h"
#include "common/rpc/thread_pool.h"
#include "common/rpc/transport.h"

namespace mu {

// The calls under way of all channels of a transport, so that they can be cancelled and waited for.
// Thread safe.
class GrpcActiveCalls {
 public:
  // False: the transport is gone, the call must be cancelled.
  bool Add(ClientCall* call, std::weak_ptr<ClientCall> weak, const Channel* channel);
  void Remove(ClientCall* call);
  void CancelCallsOf(const Channel* channel);
  void CloseAndWait();
  // For what the end of a call has to wait for.
  ThreadPool& threads() { return threads_; }

 private:
  struct Entry {
    std::weak_ptr<ClientCall> call;
    const Channel* channel;
  };
  void CancelIf(const Channel* channel);  // null: all

  Mutex mutex_;
  CondVar empty_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<ClientCall*, Entry> calls_ ABSL_GUARDED_BY(mutex_);
  ThreadPool threads_{64};
};

// Who is called.
struct GrpcPeer {
  std::string address;
  pb::Role role = pb::ROLE_UNSPECIFIED;
  TlsFiles tls;
};

class GrpcChannel final : public Channel {
 public:
  GrpcChannel(GrpcPeer peer, const TransportOptions& options, const GrpcCredentials& credentials,
              std::shared_ptr<GrpcActiveCalls> active);
  ~GrpcChannel() override { active_->CancelCallsOf(this); }

  std::shared_ptr<ClientCall> Unary(const std::string& method, Buffer request, CallOptions options,
                                    std::function<void(absl::Status, Buffer)> done) override;
  std::shared_ptr<ClientCall> ServerStream(const std::string& method, Buffer request,
                                           CallOptions options, std::function<void(Buffer)> message,
                                           std::function<void(absl::Status)> done) override;
  std::shared_ptr<ClientStream> Converse(const std::string& method, Conversation conversation,
                                         std::function<void(absl::Status)> done) override;

 private:
  const std::shared_ptr<const GrpcPeer> peer_;  // its calls may outlive us
  const std::shared_ptr<GrpcActiveCalls> active_;
  grpc::GenericStub stub_;
};

}  // namespace mu
