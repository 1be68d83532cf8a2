#include "common/rpc/memory_call.h"

#include <utility>

#include "common/base/error_kind.h"
#include "common/rpc/memory_network.h"

namespace mu {
namespace {

class Handle final : public ServerCall {
 public:
  explicit Handle(std::shared_ptr<MemoryCall> call) : call_(std::move(call)) {}
  ~Handle() override {
    call_->Answer(absl::InternalError("the handler of " + call_->method() + " gave no answer"));
  }
  bool IsCancelled() const override { return call_->IsCancelled(); }
  void OnCancel(std::function<void()> callback) override {
    call_->SetOnCancel(std::move(callback));
  }
  void Send(Buffer message) override { call_->Send(std::move(message)); }
  void Finish(absl::Status status, Buffer reply) override {
    call_->Answer(std::move(status), std::move(reply));
  }
  void Converse(Conversation conversation) override {
    call_->SetConversation(std::move(conversation));
  }
  void Poke() override { call_->PokeServer(); }

 private:
  const std::shared_ptr<MemoryCall> call_;
};

}  // namespace

std::shared_ptr<ServerCall> NewMemoryHandle(std::shared_ptr<MemoryCall> call) {
  return std::make_shared<Handle>(std::move(call));
}

MemoryCall::MemoryCall(std::shared_ptr<MemoryNetwork> network, Spec spec)
    : network_(std::move(network)),
      address_(std::move(spec.address)),
      method_(std::move(spec.method)),
      channel_(spec.channel),
      message_(std::move(spec.message)),
      done_(std::move(spec.done)),
      from_client_(std::move(spec.next)) {}

bool MemoryCall::Attach(std::shared_ptr<MemoryServerState> server) {
  MutexLock lock(&mutex_);
  if (ended_) return false;
  server_ = std::move(server);
  return true;
}

void MemoryCall::ScheduleDelivery() {
  if (delivering_) return;
  delivering_ = true;
  network_->threads().Post([self = shared_from_this()] { self->Deliver(); });
}

void MemoryCall::Deliver() {
  while (true) {
    Buffer message;
    absl::Status status;
    Buffer reply;
    bool last = false;
    {
      MutexLock lock(&mutex_);
      if (!messages_.empty()) {
        message = std::move(messages_.front());
        messages_.pop_front();
      } else if (ended_) {
        last = true;  // delivering_ stays true: nothing comes after
        status = std::move(status_);
        reply = std::move(reply_);
      } else {
        delivering_ = false;
        return;
      }
    }
    if (!last) {
      message_(std::move(message));
      continue;
    }
    message_ = nullptr;
    from_client_.Stop();
    {
      // Gone, with all that it owns, before the transport hears that the call is over.
      const auto done = std::move(done_);
      done_ = nullptr;
      done(std::move(status), std::move(reply));
    }
    network_->Remove(this);
    return;
  }
}

void MemoryCall::EndForClient(absl::Status status, Buffer reply, bool drop_messages) {
  MutexLock lock(&mutex_);
  if (ended_) return;
  ended_ = true;
  status_ = FromWire(std::move(status));
  if (status_.ok()) reply_ = std::move(reply);
  if (drop_messages) messages_.clear();
  ScheduleDelivery();
}

void MemoryCall::EndFromClient(absl::Status status) {
  {
    MutexLock lock(&mutex_);
    if (ended_) return;
  }
  EndForClient(std::move(status), {}, true);
  network_->threads().Post([self = shared_from_this()] { self->TellHandler(); });
}

void MemoryCall::TellHandler() {
  std::shared_ptr<MemoryServerState> server;
  {
    MutexLock lock(&mutex_);
    server = server_;
  }
  // A server that is shutting down tells the handlers of its calls itself.
  if (server == nullptr || !server->Enter()) return;
  {
    std::function<void()> callback;
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
      callback.swap(on_cancel_);
    }
    if (callback) callback();
  }
  server->Leave();
}

void MemoryCall::Send(Buffer message) {
  MutexLock lock(&mutex_);
  if (answered_ || ended_) return;
  messages_.push_back(std::move(message));
  ScheduleDelivery();
}

void MemoryCall::Answer(absl::Status status, Buffer reply) {
  std::shared_ptr<MemoryServerState> server;
  std::function<void()> dropped;
  std::shared_ptr<const Conversation> conversation;
  {
    MutexLock lock(&mutex_);
    if (answered_) return;
    answered_ = true;
    server.swap(server_);
    dropped.swap(on_cancel_);
    conversation.swap(conversation_);
    said_.clear();
  }
  dropped = nullptr;
  conversation = nullptr;
  from_server_.Stop();
  EndForClient(std::move(status), std::move(reply), false);
  if (server != nullptr) server->Remove(this);
}

void MemoryCall::SetConversation(Conversation conversation) {
  from_server_.Start(conversation.next);
  auto shared = std::make_shared<const Conversation>(std::move(conversation));
  MutexLock lock(&mutex_);
  if (!answered_) conversation_ = std::move(shared);
}

void MemoryCall::Listen() {
  MutexLock lock(&mutex_);
  listening_ = true;
  if (!said_.empty()) ScheduleServing();
}

void MemoryCall::PostPump(WritePump* pump) {
  if (!pump->Poke()) return;
  network_->threads().Post([self = shared_from_this(), pump] { self->Pump(pump); });
}

void MemoryCall::Pump(WritePump* pump) {
  Buffer message;
  while (pump->Next(&message)) {
    if (pump == &from_server_) {
      Send(std::move(message));
      continue;
    }
    MutexLock lock(&mutex_);
    if (ended_ || answered_) continue;
    said_.push_back(std::move(message));
    if (listening_) ScheduleServing();
  }
}

void MemoryCall::ScheduleServing() {
  if (serving_) return;
  serving_ = true;
  network_->threads().Post([self = shared_from_this()] { self->Serve(); });
}

void MemoryCall::Serve() {
  while (true) {
    std::shared_ptr<MemoryServerState> server;
    std::shared_ptr<const Conversation> conversation;
    Buffer message;
    {
      MutexLock lock(&mutex_);
      server = server_;
      conversation = conversation_;
      if (said_.empty() || conversation == nullptr || server == nullptr) {
        said_.clear();
        serving_ = false;
        return;
      }
      message = std::move(said_.front());
      said_.pop_front();
    }
    if (!server->Enter()) continue;  // it is shutting down, and answers soon
    conversation->message(std::move(message));
    conversation = nullptr;
    server->Leave();
  }
}

bool MemoryCall::IsCancelled() const {
  MutexLock lock(&mutex_);
  return cancelled_;
}

void MemoryCall::SetOnCancel(std::function<void()> callback) {
  {
    MutexLock lock(&mutex_);
    if (answered_) return;
    if (!cancelled_) {
      on_cancel_ = std::move(callback);
      return;
    }
  }
  callback();
}

void MemoryCall::Abort() {
  std::function<void()> callback;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    callback.swap(on_cancel_);
    messages_.clear();
  }
  if (callback) callback();
  Answer(absl::UnavailableError("the server at " + address_ + " is shutting down"));
}

}  // namespace mu
