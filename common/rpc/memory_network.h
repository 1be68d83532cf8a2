// What the memory transport's channels and servers share: addresses, threads, the calls under way.
#pragma once

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/rpc/memory_call.h"
#include "common/rpc/thread_pool.h"
#include "common/rpc/transport.h"

namespace mu {

// A server as the network and its calls know it. Thread safe.
class MemoryServerState final : public std::enable_shared_from_this<MemoryServerState> {
 public:
  explicit MemoryServerState(MethodTable methods) : methods_(std::move(methods)) {}

  // Runs the handler, here or on the pool.
  void Accept(std::shared_ptr<MemoryCall> call, Buffer request);
  // Shutdown waits for what has entered. False once it has begun.
  bool Enter();
  void Leave();
  void Remove(MemoryCall* call);
  void Shutdown();

 private:
  void Run(const MethodTable::Method& method, std::shared_ptr<MemoryCall> call, Buffer request);

  const MethodTable methods_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<MemoryCall*, std::shared_ptr<MemoryCall>> calls_ ABSL_GUARDED_BY(mutex_);
  ThreadPool pool_{4096};
};

class MemoryNetwork final : public std::enable_shared_from_this<MemoryNetwork> {
 public:
  // The address that was bound; UNAVAILABLE if it is in use.
  absl::StatusOr<std::string> Bind(const std::string& address,
                                   std::shared_ptr<MemoryServerState> server);
  void Unbind(const std::string& address);

  // Sends the request on its way, to end within `timeout`.
  void Start(std::shared_ptr<MemoryCall> call, Buffer request, absl::Duration timeout);
  // The call's callbacks are done with.
  void Remove(MemoryCall* call);
  void CancelCallsOf(const Channel* channel);
  void CloseAndWait();

  // Like gRPC's: few, so that a handler that blocks them is noticed.
  ThreadPool& threads() { return threads_; }

 private:
  struct Active {
    std::shared_ptr<MemoryCall> call;
    uint64_t timer;  // 0: none
  };
  // Returns the timer; 0: none.
  static uint64_t EndAfter(const std::shared_ptr<MemoryCall>& call, absl::Duration timeout);
  void CancelIf(const Channel* channel, const char* why);

  Mutex mutex_;
  CondVar idle_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int next_port_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<std::string, std::shared_ptr<MemoryServerState>> servers_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<MemoryCall*, Active> active_ ABSL_GUARDED_BY(mutex_);
  ThreadPool threads_{2};
};

}  // namespace mu
