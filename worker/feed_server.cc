#include "worker/feed_server.h"

#include "worker/core/refusal.h"

namespace mu {

void FeedServer::Open(std::shared_ptr<ServerCall> call, const Buffer& first) {
  pb::FeedRequest request;
  if (!request.ParseFromArray(first.data(), static_cast<int>(first.size())) ||
      !request.has_hello()) {
    return call->Finish(
        absl::InvalidArgumentError("the request does not parse as a FeedRequest with a hello"));
  }
  const pb::FeedHello& hello = request.hello();
  if (incarnation_ != 0 && hello.incarnation() != 0 && hello.incarnation() != incarnation_) {
    return call->Finish(WorkerRefusal(
        pb::ERROR_STALE, "another process has the address of the worker that is meant"));
  }
  // Held until the connection is in its place: a newer one comes after it.
  MutexLock lock(&mutex_);
  const absl::StatusOr<bool> is_new = shell_->OpenFeed(hello);
  if (!is_new.ok()) return call->Finish(is_new.status());
  if (*is_new && session_ != nullptr) std::exchange(session_, nullptr)->End();
  if (session_ == nullptr) session_ = std::make_shared<FeedSession>(start_);
  session_->Connect(std::move(call), hello, request.received());
}

}  // namespace mu
