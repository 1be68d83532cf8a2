// One stream of the coordinator, as the worker holds it: its runs and leases, and whatever
// connection carries it at the moment. See FeedRequest in proto/worker.proto. Thread safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/rpc/resumable_end.h"
#include "common/rpc/transport.h"
#include "proto/worker.pb.h"
#include "worker/function_run.h"

namespace mu {

class FeedSession : public std::enable_shared_from_this<FeedSession> {
 public:
  // A run has come; `call` takes its replies, and tells when nobody waits for them any more. Must
  // not block.
  using StartRun = std::function<void(std::shared_ptr<ServerCall> call, pb::RunRequest request,
                                      RunLeases leases)>;

  explicit FeedSession(StartRun start) : start_(std::move(start)) {}

  // From a connection's handler: this one carries the stream from now on.
  void Connect(std::shared_ptr<ServerCall> call, const pb::FeedHello& hello, uint64_t received);
  // A newer stream has begun.
  void End();

 private:
  class Run;
  using Runs = absl::flat_hash_map<uint64_t, std::weak_ptr<Run>>;  // by RunRequest.run

  void OnMessage(uint64_t connection, const Buffer& bytes);
  void Handle(pb::FeedRequest request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);
  void Start(pb::RunRequest request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);
  absl::StatusOr<std::shared_ptr<const pb::LeaseProto>> LeaseOf(uint64_t id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);
  absl::StatusOr<RunLeases> LeasesOf(const pb::RunRequest& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);
  // What a run says. `message`: of RunReply, serialised.
  void Say(uint64_t run, const Buffer& message, const absl::Status* end);
  void Poke();
  // Nobody waits for what is left of the runs.
  void Abandon();
  // The connection is over, with this if it is not known yet.
  void Disconnect(uint64_t connection, const absl::Status& why);

  const StartRun start_;
  ResumableEnd end_;

  Mutex reading_ ABSL_ACQUIRED_BEFORE(mutex_);  // held while a message is handled
  absl::flat_hash_map<uint64_t, std::shared_ptr<const pb::LeaseProto>> leases_
      ABSL_GUARDED_BY(reading_);

  Mutex mutex_;
  std::shared_ptr<ServerCall> call_ ABSL_GUARDED_BY(mutex_);  // null: not connected
  uint64_t connection_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration patience_ ABSL_GUARDED_BY(mutex_);  // without a connection; 0: without end
  Runs runs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
