// Whose requests a worker answers: those of one job, and of the newest epoch of its coordinator.
//
// Thread safe.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "proto/coordinator.pb.h"

namespace mu {

class RequestGate {
 public:
  enum class Verdict {
    kSameEpoch,
    kNewEpoch,  // the first request of a newer coordinator: what the older one installed is no longer valid
  };

  // The first context, that of the registration, fixes the job. FAILED_PRECONDITION: another job (ERROR_OTHER_JOB), an
  // older epoch (ERROR_STALE).
  absl::StatusOr<Verdict> Admit(const pb::RequestContext& context);

  // The highest low-water mark of all requests of this epoch.
  uint64_t low_water() const;
  uint64_t epoch() const;

 private:
  mutable Mutex mutex_;
  std::optional<uint64_t> job_ ABSL_GUARDED_BY(mutex_);
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t low_water_ ABSL_GUARDED_BY(mutex_) = 0;
};

// FAILED_PRECONDITION of `kind`, about a worker.
absl::Status WorkerRefusal(pb::ErrorKind kind, const std::string& message);

}  // namespace mu
