// Answers muster.Worker/Feed: finds the stream that a connection goes on with, or begins a new one.
// Thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/transport.h"
#include "worker/core_shell.h"
#include "worker/feed_session.h"

namespace mu {

class FeedServer {
 public:
  // `incarnation`: of this process; 0: any is meant. `shell` outlives it.
  FeedServer(uint64_t incarnation, CoreShell* shell, FeedSession::StartRun start)
      : incarnation_(incarnation), shell_(shell), start_(std::move(start)) {}

  // `first`: a FeedRequest with a hello. The call ends FAILED_PRECONDITION (ERROR_STALE) if another
  // process is meant; errors of WorkerCore::OpenFeed.
  void Open(std::shared_ptr<ServerCall> call, const Buffer& first);

 private:
  const uint64_t incarnation_;
  CoreShell* const shell_;
  const FeedSession::StartRun start_;

  Mutex mutex_;
  std::shared_ptr<FeedSession> session_ ABSL_GUARDED_BY(mutex_);  // the newest
};

}  // namespace mu
