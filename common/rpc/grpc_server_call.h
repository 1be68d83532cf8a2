// One call on the server: gRPC's reactor, and the ServerCall that its handler holds.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/transport.h"
#include "common/rpc/write_pump.h"

namespace mu {

class GrpcServer;

// Lives until both gRPC (OnDone) and the handler have let it go; after it has finished the
// handler's requests are ignored. Thread safe.
class GrpcServerCall final : public grpc::ServerGenericBidiReactor,
                             public std::enable_shared_from_this<GrpcServerCall> {
 public:
  // `caller`: the names of its certificate; none: it needs none.
  GrpcServerCall(GrpcServer* server, const MethodTable::Method* method, std::string name,
                 std::optional<std::vector<std::string>> caller)
      : server_(server), method_(method), name_(std::move(name)), caller_(std::move(caller)) {}

  // Begins to read the request.
  void Start() { StartRead(&request_); }
  // What the handler gets. If it lets it go without Finish, the call ends with INTERNAL.
  std::shared_ptr<ServerCall> NewHandle();

  void Send(Buffer message);
  void Answer(absl::Status status, const Buffer& reply = {});
  bool IsCancelled() const;
  bool CallerMayBe(pb::Role role) const;
  void SetOnCancel(std::function<void()> callback);
  void SetConversation(Conversation conversation);
  void Poke();
  // The handler has returned: a stream in both directions reads on.
  void ReadOn();
  // The server goes away: tells the handler and answers UNAVAILABLE in its place.
  void Abort();

  const MethodTable::Method& method() const { return *method_; }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks the conversation what is to be written.
  void Pump();
  void EndPumping(bool broken);

  GrpcServer* const server_;  // not after OnDone
  const MethodTable::Method* const method_;
  const std::string name_;
  const std::optional<std::vector<std::string>> caller_;
  grpc::ByteBuffer request_;
  bool dispatched_ = false;  // the first message went to the handler
  WritePump pump_;           // of a conversation

  mutable Mutex mutex_;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  int pumping_ ABSL_GUARDED_BY(mutex_) = 0;  // threads in Poke, and a write that one has begun
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);  // what gRPC is writing
  std::deque<Buffer> queue_ ABSL_GUARDED_BY(mutex_);
  grpc::Status final_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Conversation> conversation_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_cancel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
