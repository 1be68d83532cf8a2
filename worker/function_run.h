// One call of a function on this worker, from its arrival until its stream ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/rpc/transport.h"
#include "common/tensor/tensor.h"
#include "proto/worker.pb.h"

namespace mu {

class DatasetReader;
struct WorkerFunction;

// What a run needs beside its request; set before it is queued.
struct RunInputs {
  std::shared_ptr<WorkerFunction> function;
  std::shared_ptr<DatasetReader> dataset;  // null if the function reads none
  std::vector<Tensor> args;
};

// Thread safe: the queue's thread executes it while others may stop it.
class FunctionRun {
 public:
  FunctionRun(muster::RunRequest request, std::shared_ptr<ServerCall> call, RunInputs inputs = {})
      : request_(std::move(request)), call_(std::move(call)), inputs_(std::move(inputs)) {}

  const muster::RunRequest& request() const { return request_; }
  uint64_t id() const { return request_.function(); }
  const std::shared_ptr<ServerCall>& call() const { return call_; }
  const RunInputs& inputs() const { return inputs_; }

  // It ends before its next step, with `why` (the first one counts). What waits for data of servers
  // is aborted; a push under way is not.
  void Stop(const absl::Status& why) {
    MutexLock lock(&mutex_);
    if (aborted_) return;
    if (!stopped_.load(std::memory_order_relaxed)) why_ = why;
    stopped_.store(true, std::memory_order_release);
    aborted_ = true;
    if (abort_) abort_();
  }
  // Its running step is the last; the rest is for another worker. Nothing is aborted before a Stop.
  void HandBack() {
    MutexLock lock(&mutex_);
    if (stopped_.load(std::memory_order_relaxed)) return;
    handed_back_ = true;
    stopped_.store(true, std::memory_order_release);
  }
  bool handed_back() const {
    MutexLock lock(&mutex_);
    return handed_back_;
  }
  bool aborted() const {
    MutexLock lock(&mutex_);
    return aborted_;
  }
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  absl::Status why() const {
    MutexLock lock(&mutex_);
    return why_;
  }

  // Names what Stop calls, at once if it was called before; empty: nothing. It must not block nor
  // call back.
  void SetAbort(std::function<void()> abort) {
    MutexLock lock(&mutex_);
    abort_ = std::move(abort);
    if (abort_ && aborted_) abort_();
  }

 private:
  const muster::RunRequest request_;
  const std::shared_ptr<ServerCall> call_;
  const RunInputs inputs_;
  mutable Mutex mutex_;
  std::atomic<bool> stopped_{false};
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  bool handed_back_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> abort_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
