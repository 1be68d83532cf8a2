// A channel whose calls the test answers by hand.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/rpc/transport.h"

namespace mu::testing {

// Thread safe. Unary calls only.
class HeldChannel final : public Channel {
 public:
  class Call final : public ClientCall {
   public:
    Call(std::string name, Buffer bytes, std::function<void(absl::Status, Buffer)> done)
        : method(std::move(name)), request(std::move(bytes)), done_(std::move(done)) {}
    // Unlike the transport's calls this one goes on: the test says how it ends.
    void Cancel() override { cancelled = true; }
    void Answer(absl::Status status, Buffer reply = {}) {
      std::exchange(done_, nullptr)(std::move(status), std::move(reply));
    }

    const std::string method;
    const Buffer request;
    std::atomic<bool> cancelled{false};

   private:
    std::function<void(absl::Status, Buffer)> done_;
  };

  std::shared_ptr<ClientCall> Unary(const std::string& method, Buffer request, CallOptions,
                                    std::function<void(absl::Status, Buffer)> done) override {
    auto call = std::make_shared<Call>(method, std::move(request), std::move(done));
    MutexLock lock(&mutex_);
    calls_.push_back(call);
    changed_.SignalAll();
    return call;
  }
  std::shared_ptr<ClientCall> ServerStream(const std::string&, Buffer, CallOptions,
                                           std::function<void(Buffer)>,
                                           std::function<void(absl::Status)>) override {
    MU_CHECK(false);
    return nullptr;
  }
  std::shared_ptr<ClientStream> Converse(const std::string&, Conversation,
                                         std::function<void(absl::Status)>) override {
    MU_CHECK(false);
    return nullptr;
  }

  // Waits for it.
  std::shared_ptr<Call> Next() {
    MutexLock lock(&mutex_);
    while (calls_.empty()) changed_.Wait(&mutex_);
    std::shared_ptr<Call> call = std::move(calls_.front());
    calls_.pop_front();
    return call;
  }
  size_t waiting() const {
    MutexLock lock(&mutex_);
    return calls_.size();
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu::testing
