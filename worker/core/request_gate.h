// Whose requests a worker answers: those of one job, and of the newest epoch of its coordinator. A
// pure state machine.
//
// A worker that registers belongs to whoever answers its registration. Requests may be quicker than
// that answer: those of its own coordinator have to wait for it, and another coordinator must not
// be taken for its own.
//
// The epoch rises only by what a coordinator does to make the worker its own: its answer to a
// registration, and calls that install or run something or cancel it (Configure, InstallDataset,
// InstallFunction, Run, CancelRuns). A call that only reads (ScanFile) raises nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "proto/coordinator.pb.h"

namespace mu {

class RequestGate {
 public:
  enum class Verdict {
    kSameEpoch,
    kNewEpoch,  // the first request of a newer coordinator: what the older one installed is no
                // longer valid
  };

  // `registers`: Register() fixes the job; else the first context does.
  explicit RequestGate(bool registers = false) : registers_(registers) {}

  // What the coordinator answered to the registration. Errors as Admit.
  absl::StatusOr<Verdict> Register(const pb::RequestContext& context);
  // FAILED_PRECONDITION: another job (ERROR_OTHER_JOB), an older epoch (ERROR_STALE). UNAVAILABLE
  // (ERROR_MACHINE): not registered yet.
  absl::StatusOr<Verdict> Admit(const pb::RequestContext& context);

  // For calls that only read: changes nothing. Errors as Admit, and FAILED_PRECONDITION
  // (ERROR_NOT_INSTALLED) for a newer epoch, of which nothing can be here.
  absl::Status AdmitLook(const pb::RequestContext& context) const;

  // Admit cannot tell yet, but may soon: a request should wait.
  bool undecided() const { return registers_ && !registered_ && !closed_; }
  // Nothing waits any more. What was registered is admitted as before.
  void Close() { closed_ = true; }

  // The highest low-water mark of all requests of this epoch.
  uint64_t low_water() const { return low_water_; }
  uint64_t epoch() const { return epoch_; }

 private:
  absl::StatusOr<Verdict> AdmitRegistered(const pb::RequestContext& context);
  // Another job or an older epoch.
  absl::Status Check(const pb::RequestContext& context) const;

  const bool registers_;
  bool registered_ = false;
  bool closed_ = false;
  std::optional<uint64_t> job_;
  uint64_t epoch_ = 0;
  uint64_t low_water_ = 0;
};

}  // namespace mu
