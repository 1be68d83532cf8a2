// Calls of handlers without a transport.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/transport.h"

namespace mu::fuzzing {

// Keeps what the handler answers. Thread safe.
class RecordedCall final : public ServerCall {
 public:
  bool IsCancelled() const override { return false; }
  void OnCancel(std::function<void()>) override {}
  void Send(Buffer message) override {
    MutexLock lock(&mutex_);
    messages_.push_back(std::move(message));
  }
  void Finish(absl::Status status, Buffer reply) override {
    {
      MutexLock lock(&mutex_);
      if (finished_) return;
      finished_ = true;
      status_ = std::move(status);
      reply_ = std::move(reply);
    }
    done_.Notify();
  }

  void Converse(Conversation conversation) override { conversation_ = std::move(conversation); }
  void Poke() override {
    Buffer message;
    while (conversation_.next(&message)) Send(std::move(message));
  }
  // Of a stream in both directions, in the order in which it is said.
  void Hear(Buffer message) { conversation_.message(std::move(message)); }

  // Whether it finished within the time.
  bool Wait(absl::Duration timeout) { return done_.WaitFor(timeout); }
  absl::Status status() const {
    MutexLock lock(&mutex_);
    return status_;
  }
  Buffer reply() const {
    MutexLock lock(&mutex_);
    return reply_;
  }

 private:
  mutable Mutex mutex_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Buffer reply_ ABSL_GUARDED_BY(mutex_);
  Conversation conversation_;  // set by the handler
  std::vector<Buffer> messages_ ABSL_GUARDED_BY(mutex_);
  Notification done_;
};

// Calls "/muster.SERVICE/METHOD" on this thread; null if there is no such method.
inline std::shared_ptr<RecordedCall> CallHandler(const MethodTable& methods,
                                                 const std::string& method, Buffer request) {
  const MethodTable::Method* const found = methods.Find(method);
  if (found == nullptr) return nullptr;
  auto call = std::make_shared<RecordedCall>();
  found->handler(call, std::move(request));
  return call;
}

}  // namespace mu::fuzzing
