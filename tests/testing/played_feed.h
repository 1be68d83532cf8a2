// The worker's end of the coordinator's streams, for workers that are played by a test.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/transport.h"
#include "worker/feed_session.h"

namespace mu::testing {

// Thread safe.
class PlayedFeed {
 public:
  explicit PlayedFeed(FeedSession::StartRun start) : start_(std::move(start)) {}

  void AddMethod(MethodTable* methods) {
    methods->AddConversation(
        "/muster.Worker/Feed", RunOn::kTransportThread,
        [this](std::shared_ptr<ServerCall> call, Buffer bytes) { Open(std::move(call), bytes); });
  }

  std::atomic<int> connections{0};

 private:
  // A new stream, or another connection of the one before.
  void Open(std::shared_ptr<ServerCall> call, const Buffer& bytes) {
    pb::FeedRequest first;
    if (!first.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return call->Finish(absl::InvalidArgumentError("no FeedRequest"));
    std::shared_ptr<FeedSession> session;
    {
      MutexLock lock(&mutex_);
      if (session_ == nullptr || stream_ != first.hello().stream())
        session_ = std::make_shared<FeedSession>(start_);
      stream_ = first.hello().stream();
      session = session_;
    }
    ++connections;
    session->Connect(std::move(call), first.hello(), first.received());
  }

  const FeedSession::StartRun start_;
  Mutex mutex_;
  uint64_t stream_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<FeedSession> session_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu::testing
