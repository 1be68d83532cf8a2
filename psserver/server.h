// A parameter server without its transport: the handlers of the service PsServer (proto/psserver.proto), over a store, a
// memory of applied pushes and the checks of who may call.
//
// Thread safe. Errors: those of Admission (psserver/admission.h); otherwise what each handler says, with an ErrorDetail
// of ROLE_PSSERVER.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/env/clock.h"
#include "common/obs/telemetry.h"
#include "common/rpc/transport.h"
#include "proto/psserver.pb.h"
#include "psserver/admission.h"
#include "psserver/applied_pushes.h"
#include "psserver/store/store.h"

namespace mu {

struct PsServerOptions {
  Clock* clock = Clock::Real();
  // Serve only while the lease that RenewLease extends lasts. Without a coordinator (tests, tools): false.
  bool leased = false;
  Telemetry* telemetry = &Telemetry::Process();
};

class PsServer {
 public:
  explicit PsServer(PsServerOptions options = {});

  // Adds the methods "/muster.PsServer/...". The table's server must end before this object does.
  void RegisterMethods(MethodTable* methods);

  // From the membership: what the coordinator said.
  absl::Status SetIdentity(uint64_t job, uint64_t epoch, uint32_t index) {
    return admission_.SetIdentity(job, epoch, index);
  }
  void RenewLease(int64_t sent_ns, absl::Duration lease) { admission_.RenewLease(sent_ns, lease); }
  void RaiseLowWater(uint64_t function) { pushes_.RaiseLowWater(function); }

  // Adds what is new in the routing; repeats are harmless. FAILED_PRECONDITION for contradictions.
  absl::StatusOr<muster::ConfigurePsReply> Configure(const muster::ConfigurePsRequest& request);
  // Frames in, a frame out. INVALID_ARGUMENT, OUT_OF_RANGE for bad requests.
  absl::StatusOr<Buffer> Pull(const Buffer& request);
  // Calls `done` once, at once or, for a repeat of a push in progress, when that ends. INVALID_ARGUMENT, OUT_OF_RANGE
  // for bad requests, of which nothing is applied; FAILED_PRECONDITION (ERROR_STALE) below the low-water mark.
  void Push(const Buffer& request, std::function<void(absl::StatusOr<muster::PushReply>)> done);
  absl::StatusOr<muster::AssignReply> Assign(const muster::AssignRequest& request);
  // Blocks until no push below the mark is in progress, as Save and Restore block for their files.
  absl::StatusOr<muster::FenceReply> Fence(const muster::FenceRequest& request);
  absl::StatusOr<muster::SaveReply> Save(const muster::SaveRequest& request);
  // Replaces the state by the checkpoint's, in context.generation; no files: the initial values. A repeat does nothing.
  // DATA_LOSS or NOT_FOUND name a bad or missing file; nothing has changed then.
  absl::StatusOr<muster::RestoreReply> Restore(const muster::RestoreRequest& request);
  absl::StatusOr<muster::PsStatsReply> GetStats(const muster::PsStatsRequest& request);

 private:
  absl::Status ApplyPush(const muster::PushRequest& request, absl::Span<const char> payload);
  // Attaches the server's detail to errors that have none.
  absl::Status Detailed(absl::Status status, int64_t step = 0) const;

  const PsServerOptions options_;
  Timer* const pull_timer_;
  Timer* const push_timer_;
  Counter* const pulled_rows_;
  Counter* const repeated_counter_;
  Admission admission_;
  Store store_;
  AppliedPushes pushes_;
  std::atomic<uint64_t> pulls_{0};
  std::atomic<uint64_t> applied_{0};
  std::atomic<uint64_t> repeated_{0};
  std::atomic<bool> dirty_{false};  // pushes were applied since the last restore
  Mutex restore_mutex_;
  uint64_t restored_rows_ ABSL_GUARDED_BY(restore_mutex_) = 0;
};

}  // namespace mu
