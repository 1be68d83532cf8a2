// Drives worker services without a coordinator: runs of one function that reads no data, on workers
// that belong to nobody yet. With Listen workers may end and come back, as under a coordinator:
// what an ended one had under way is not run again, and whoever comes is configured, has the
// function installed and is given runs at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/scale/direct.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/client/feed_client.h"
#include "common/rpc/transport.h"
#include "proto/graph.pb.h"
#include "proto/worker.pb.h"

namespace mu::scale {

// A worker has come: pb::RegisterRequest with its address; the answer comes when it has runs.
inline constexpr char kComeMethod[] = "/bench/Come";

class DirectWorkers {
 public:
  // Functions of `steps` steps.
  DirectWorkers(const DirectOptions& options, pb::FunctionProto function, uint32_t steps);
  ~DirectWorkers();
  DirectWorkers(const DirectWorkers&) = delete;
  DirectWorkers& operator=(const DirectWorkers&) = delete;

  // Workers may end, and others come, from now on: where they say so. Before Begin.
  absl::StatusOr<std::string> Listen();
  // Prepares all of them, then starts runs on each.
  absl::Status Begin(const std::vector<std::string>& addresses);
  // Starts no run afterwards.
  absl::StatusOr<Measured> Measure();
  uint64_t lost() const { return lost_; }

 private:
  struct Worker {
    std::shared_ptr<Channel> channel;
    std::shared_ptr<FeedClient> feed;
  };
  // Configures it, installs the function and opens the stream. Blocks.
  absl::StatusOr<Worker*> Prepare(const std::string& address);
  void StartAll(Worker* worker);
  void Start(Worker* worker);
  void OnReply(Worker* worker, const pb::FeedReply& reply);
  void OnStreamEnded(const absl::Status& status);
  void Fail(const absl::Status& status);

  const DirectOptions options_;
  const pb::FunctionProto function_;
  const Fingerprint fingerprint_;
  const uint32_t steps_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<RpcServer> server_;  // of Listen
  std::atomic<uint64_t> last_run_ = 0, ended_ = 0, lost_ = 0;
  std::atomic<bool> stopping_ = false, may_lose_ = false;
  Mutex mutex_;
  std::deque<Worker> workers_ ABSL_GUARDED_BY(mutex_);  // its elements stay where they are
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu::scale
