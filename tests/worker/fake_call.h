// A call without a transport: keeps what its handler sent.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/rpc/transport.h"
#include "proto/worker.pb.h"

namespace mu::testing {

class FakeCall : public ServerCall {
 public:
  bool IsCancelled() const override {
    MutexLock lock(&mutex_);
    return cancelled_;
  }
  void OnCancel(std::function<void()> callback) override {
    {
      MutexLock lock(&mutex_);
      on_cancel_ = callback;
      if (!cancelled_) return;
    }
    callback();
  }
  void Send(Buffer message) override {
    muster::RunReply reply;
    MU_CHECK(reply.ParseFromArray(message.data(), static_cast<int>(message.size())));
    MutexLock lock(&mutex_);
    messages_.push_back(std::move(reply));
  }
  void Finish(absl::Status status, Buffer) override {
    {
      MutexLock lock(&mutex_);
      if (finished_.HasBeenNotified()) return;
      status_ = std::move(status);
    }
    finished_.Notify();
  }

  void Cancel() {
    std::function<void()> callback;
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
      callback = on_cancel_;
    }
    if (callback) callback();
  }
  bool finished() const { return finished_.HasBeenNotified(); }
  absl::Status Wait() {
    finished_.Wait();
    MutexLock lock(&mutex_);
    return status_;
  }
  bool handed_back() const {
    MutexLock lock(&mutex_);
    return !messages_.empty() && messages_.back().handed_back();
  }
  std::vector<muster::RunReply> messages() const {
    MutexLock lock(&mutex_);
    return messages_;
  }

 private:
  mutable Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> on_cancel_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<muster::RunReply> messages_ ABSL_GUARDED_BY(mutex_);
  Notification finished_;
};

}  // namespace mu::testing
