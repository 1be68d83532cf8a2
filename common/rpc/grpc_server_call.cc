#include "common/rpc/grpc_server_call.h"

#include <algorithm>
#include <utility>

#include "common/rpc/grpc_bytes.h"
#include "common/rpc/grpc_server.h"

namespace mu {
namespace {

class Handle final : public ServerCall {
 public:
  Handle(std::shared_ptr<GrpcServerCall> call, const std::string& name)
      : call_(std::move(call)), name_(name) {}
  ~Handle() override {
    call_->Answer(absl::InternalError("the handler of " + name_ + " gave no answer"));
  }

  bool IsCancelled() const override { return call_->IsCancelled(); }
  bool CallerMayBe(pb::Role role) const override { return call_->CallerMayBe(role); }
  void OnCancel(std::function<void()> callback) override {
    call_->SetOnCancel(std::move(callback));
  }
  void Send(Buffer message) override { call_->Send(std::move(message)); }
  void Finish(absl::Status status, Buffer reply) override {
    call_->Answer(std::move(status), reply);
  }
  void Converse(Conversation conversation) override {
    call_->SetConversation(std::move(conversation));
  }
  void Poke() override { call_->Poke(); }

 private:
  const std::shared_ptr<GrpcServerCall> call_;
  const std::string name_;
};

}  // namespace

std::shared_ptr<ServerCall> GrpcServerCall::NewHandle() {
  return std::make_shared<Handle>(shared_from_this(), name_);
}

void GrpcServerCall::OnReadDone(bool ok) {
  if (dispatched_) {
    if (!ok) return;  // the caller says nothing more; whether it is gone OnCancel tells
    std::shared_ptr<const Conversation> conversation;
    {
      MutexLock lock(&mutex_);
      conversation = conversation_;
    }
    if (conversation == nullptr) return;
    conversation->message(FromByteBuffer(request_));
    request_.Clear();
    conversation = nullptr;
    return ReadOn();
  }
  if (!ok)
    return Answer(absl::InvalidArgumentError("the call of " + name_ + " carries no request"));
  Buffer request = FromByteBuffer(request_);
  request_.Clear();
  dispatched_ = true;
  server_->Dispatch(shared_from_this(), std::move(request));
}

void GrpcServerCall::ReadOn() {
  MutexLock lock(&mutex_);
  if (conversation_ != nullptr && !answered_) StartRead(&request_);
}

void GrpcServerCall::SetConversation(Conversation conversation) {
  pump_.Start(conversation.next);
  auto shared = std::make_shared<const Conversation>(std::move(conversation));
  MutexLock lock(&mutex_);
  if (!answered_) conversation_ = std::move(shared);
}

void GrpcServerCall::Poke() {
  {
    MutexLock lock(&mutex_);
    if (answered_ || cancelled_) return;
    ++pumping_;
  }
  if (pump_.Poke()) {
    Pump();
  } else {
    EndPumping(/*broken=*/false);
  }
}

void GrpcServerCall::Pump() {
  Buffer next;
  if (pump_.Next(&next)) {
    MutexLock lock(&mutex_);
    if (!answered_ && !cancelled_) {
      outgoing_ = ToByteBuffer(next);
      StartWrite(&outgoing_);
      return;
    }
  }
  EndPumping(/*broken=*/false);
}

void GrpcServerCall::EndPumping(bool broken) {
  MutexLock lock(&mutex_);
  cancelled_ |= broken;
  if (--pumping_ == 0 && answered_) Finish(final_);
}

void GrpcServerCall::Send(Buffer message) {
  MutexLock lock(&mutex_);
  if (answered_ || cancelled_) return;
  queue_.push_back(std::move(message));
  if (!writing_) WriteNext();
}

// gRPC never calls back from within a Start or Finish, so they may be called with the lock held.
void GrpcServerCall::WriteNext() {
  outgoing_ = ToByteBuffer(queue_.front());
  queue_.pop_front();
  writing_ = true;
  StartWrite(&outgoing_);
}

void GrpcServerCall::OnWriteDone(bool ok) {
  if (method_->converses) return ok ? Pump() : EndPumping(/*broken=*/true);
  MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok) {
    cancelled_ = true;
    queue_.clear();
  }
  if (!queue_.empty()) {
    WriteNext();
  } else if (answered_) {
    Finish(final_);
  }
}

void GrpcServerCall::Answer(absl::Status status, const Buffer& reply) {
  // Destroyed without the lock: they may own anything.
  std::function<void()> dropped;
  std::shared_ptr<const Conversation> conversation;
  MutexLock lock(&mutex_);
  if (answered_) return;
  answered_ = true;
  dropped.swap(on_cancel_);
  conversation.swap(conversation_);
  final_ = ToGrpcStatus(status);
  if (writing_ || pumping_ > 0) return;  // OnWriteDone or EndPumping finishes
  if (status.ok() && method_ != nullptr && !method_->streams) {
    outgoing_ = ToByteBuffer(reply);
    StartWriteAndFinish(&outgoing_, grpc::WriteOptions(), final_);
  } else {
    Finish(final_);
  }
}

bool GrpcServerCall::IsCancelled() const {
  MutexLock lock(&mutex_);
  return cancelled_;
}

bool GrpcServerCall::CallerMayBe(pb::Role role) const {
  if (!caller_.has_value()) return true;
  // Others have no name; a request may bring any number.
  if (role != pb::ROLE_COORDINATOR && role != pb::ROLE_WORKER && role != pb::ROLE_PSSERVER)
    return false;
  return std::find(caller_->begin(), caller_->end(), TlsNameOf(role)) != caller_->end();
}

void GrpcServerCall::SetOnCancel(std::function<void()> callback) {
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

void GrpcServerCall::OnCancel() {
  std::function<void()> callback;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    callback.swap(on_cancel_);
  }
  if (callback) callback();
}

void GrpcServerCall::Abort() {
  OnCancel();
  {
    MutexLock lock(&mutex_);
    queue_.clear();
  }
  Answer(absl::UnavailableError("the server is shutting down"));
}

void GrpcServerCall::OnDone() { server_->Remove(this); }

}  // namespace mu
