// A call of the memory transport: the client's end, the server's end, and what is on its way
// between them.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "common/base/mutex.h"
#include "common/rpc/transport.h"
#include "common/rpc/write_pump.h"

namespace mu {

class MemoryNetwork;
class MemoryServerState;

// Thread safe. Callbacks of one call run one at a time on the network's threads.
class MemoryCall final : public ClientStream, public std::enable_shared_from_this<MemoryCall> {
 public:
  // Constant after construction. A unary call's reply goes to `done`, a stream's messages to
  // `message`; what a stream in both directions says comes from `next`.
  struct Spec {
    std::string address;
    std::string method;
    const Channel* channel;
    std::function<void(Buffer)> message;
    std::function<bool(Buffer*)> next;
    std::function<void(absl::Status, Buffer)> done;
  };
  MemoryCall(std::shared_ptr<MemoryNetwork> network, Spec spec);

  const std::string& address() const { return address_; }
  const std::string& method() const { return method_; }
  const Channel* channel() const { return channel_; }

  // The client's end.
  void Cancel() override { EndFromClient(absl::CancelledError("the caller cancelled " + method_)); }
  void Poke() override { PostPump(&from_client_); }
  // The call is over for the client, with `status`; the handler is told, on another thread.
  void EndFromClient(absl::Status status);

  // The server's end.
  // False if the call is over already.
  bool Attach(std::shared_ptr<MemoryServerState> server);
  void Send(Buffer message);
  void Answer(absl::Status status, Buffer reply = {});
  bool IsCancelled() const;
  void SetOnCancel(std::function<void()> callback);
  void Abort();
  void SetConversation(Conversation conversation);
  // The handler has returned: what the client has said meanwhile is handed to the conversation.
  void Listen();
  void PokeServer() { PostPump(&from_server_); }

 private:
  void EndForClient(absl::Status status, Buffer reply, bool drop_messages);
  void ScheduleDelivery() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver();
  void TellHandler();
  // What `next` of one end has to say goes to the other end, until it has nothing.
  void PostPump(WritePump* pump);
  void Pump(WritePump* pump);
  void ScheduleServing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve();

  const std::shared_ptr<MemoryNetwork> network_;
  const std::string address_;
  const std::string method_;
  const Channel* const channel_;

  // Used by Deliver alone.
  std::function<void(Buffer)> message_;
  std::function<void(absl::Status, Buffer)> done_;

  WritePump from_client_;
  WritePump from_server_;

  mutable Mutex mutex_;
  // To the server's end of a stream in both directions.
  std::shared_ptr<const Conversation> conversation_ ABSL_GUARDED_BY(mutex_);
  std::deque<Buffer> said_ ABSL_GUARDED_BY(mutex_);
  bool listening_ ABSL_GUARDED_BY(mutex_) = false;  // the handler has returned
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;    // `said_` is being handed over
  std::deque<Buffer> messages_ ABSL_GUARDED_BY(mutex_);
  bool delivering_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // for the client; status_ and reply_ are set
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Buffer reply_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<MemoryServerState> server_ ABSL_GUARDED_BY(mutex_);  // until it has answered
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> on_cancel_ ABSL_GUARDED_BY(mutex_);
};

// What a handler gets; ends the call with INTERNAL if it is let go without an answer.
std::shared_ptr<ServerCall> NewMemoryHandle(std::shared_ptr<MemoryCall> call);

}  // namespace mu
