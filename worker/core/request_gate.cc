#include "worker/core/request_gate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "worker/core/protections.h"
#include "worker/core/refusal.h"

namespace mu {

absl::StatusOr<RequestGate::Verdict> RequestGate::Register(const pb::RequestContext& context) {
  MU_ASSIGN_OR_RETURN(const Verdict verdict, AdmitRegistered(context));
  registered_ = true;
  return verdict;
}

absl::StatusOr<RequestGate::Verdict> RequestGate::Admit(const pb::RequestContext& context) {
  if (registers_ && !registered_) return NotRegistered();
  return AdmitRegistered(context);
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
  if (context.epoch() < epoch_ && !MU_WORKER_BROKEN(fencing)) {
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
  if (registers_ && !registered_) return NotRegistered();
  MU_RETURN_IF_ERROR(Check(context));
  if (job_.has_value() && context.epoch() == epoch_) return absl::OkStatus();
  return WorkerRefusal(pb::ERROR_NOT_INSTALLED,
                       absl::StrCat("nothing of the coordinator's epoch ", context.epoch(),
                                    " is installed on this worker yet"));
}

absl::StatusOr<RequestGate::Verdict> RequestGate::AdmitRegistered(
    const pb::RequestContext& context) {
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

}  // namespace mu
