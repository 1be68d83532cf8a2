#include "worker/request_gate.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/steady_now.h"

namespace mu {

absl::Status WorkerRefusal(pb::ErrorKind kind, const std::string& message) {
  pb::ErrorDetail detail;
  detail.set_kind(kind);
  detail.set_role(pb::ROLE_WORKER);
  return WithDetail(absl::FailedPreconditionError(message), detail);
}

namespace {

absl::Status NotRegistered() {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_MACHINE);
  detail.set_role(pb::ROLE_WORKER);
  return WithDetail(absl::UnavailableError(
                        "this worker's coordinator has not told it yet to which job it belongs"),
                    detail);
}

}  // namespace

absl::StatusOr<RequestGate::Verdict> RequestGate::Register(const pb::RequestContext& context) {
  MutexLock lock(&mutex_);
  MU_ASSIGN_OR_RETURN(const Verdict verdict, AdmitLocked(context));
  registered_ = true;
  changed_.SignalAll();
  return verdict;
}

absl::StatusOr<RequestGate::Verdict> RequestGate::Admit(const pb::RequestContext& context) {
  MutexLock lock(&mutex_);
  if (registers_ && !registered_) return NotRegistered();
  return AdmitLocked(context);
}

absl::Status RequestGate::AwaitRegistration(absl::Duration patience) {
  const absl::Time until = SteadyNow() + patience;
  MutexLock lock(&mutex_);
  while (registers_ && !registered_ && !closed_ && SteadyNow() < until) {
    changed_.WaitFor(&mutex_, until - SteadyNow());
  }
  if (registers_ && !registered_) return NotRegistered();
  return absl::OkStatus();
}

void RequestGate::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  changed_.SignalAll();
}

absl::Status RequestGate::Check(const pb::RequestContext& context) const {
  if (!job_.has_value()) return absl::OkStatus();
  if (context.job() != *job_) {
    return WorkerRefusal(
        pb::ERROR_OTHER_JOB,
        absl::StrFormat(
            "this worker serves job %016x, not job %016x: a cluster serves one job; start "
            "workers of its own for another",
            *job_, context.job()));
  }
  if (context.epoch() < epoch_) {
    absl::Status refusal = WorkerRefusal(
        pb::ERROR_STALE, absl::StrCat("the request is of the coordinator's epoch ", context.epoch(),
                                      ", but epoch ", epoch_, " has taken over"));
    pb::ErrorDetail detail = *DetailOf(refusal);
    detail.set_epoch(epoch_);
    return WithDetail(std::move(refusal), detail);
  }
  return absl::OkStatus();
}

absl::Status RequestGate::AdmitLook(const pb::RequestContext& context) const {
  MutexLock lock(&mutex_);
  if (registers_ && !registered_) return NotRegistered();
  MU_RETURN_IF_ERROR(Check(context));
  if (job_.has_value() && context.epoch() == epoch_) return absl::OkStatus();
  return WorkerRefusal(pb::ERROR_NOT_INSTALLED,
                       absl::StrCat("nothing of the coordinator's epoch ", context.epoch(),
                                    " is installed on this worker yet"));
}

absl::StatusOr<RequestGate::Verdict> RequestGate::AdmitLocked(const pb::RequestContext& context) {
  MU_RETURN_IF_ERROR(Check(context));
  if (!job_.has_value()) {
    job_ = context.job();
    epoch_ = context.epoch();
    low_water_ = context.low_water();
    return Verdict::kSameEpoch;
  }
  if (context.epoch() > epoch_) {
    epoch_ = context.epoch();
    low_water_ = context.low_water();
    return Verdict::kNewEpoch;
  }
  low_water_ = std::max(low_water_, context.low_water());
  return Verdict::kSameEpoch;
}

uint64_t RequestGate::low_water() const {
  MutexLock lock(&mutex_);
  return low_water_;
}

uint64_t RequestGate::epoch() const {
  MutexLock lock(&mutex_);
  return epoch_;
}

}  // namespace mu
