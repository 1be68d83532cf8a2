#include "psserver/admission.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"

namespace mu {

absl::Status Admission::Refuse(absl::StatusCode code, pb::ErrorKind kind,
                               const std::string& message) const {
  pb::ErrorDetail detail;
  detail.set_kind(kind);
  detail.set_role(pb::ROLE_PSSERVER);
  detail.set_index(index_);
  return WithDetail(absl::Status(code, absl::StrCat("parameter server ", index_, ": ", message)),
                    detail);
}

absl::Status Admission::CheckIdentity(const pb::RequestContext& context) {
  if (context.job() == 0) {
    return Refuse(absl::StatusCode::kInvalidArgument, pb::ERROR_USER, "the request names no job");
  }
  if (job_ == 0 && registers_) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  "its coordinator has not told it yet to which job it belongs");
  }
  if (job_ != 0 && context.job() != job_) {
    return Refuse(absl::StatusCode::kFailedPrecondition, pb::ERROR_OTHER_JOB,
                  absl::StrFormat(
                      "it belongs to job %016x and refuses job %016x; start a cluster for each job",
                      job_, context.job()));
  }
  if (context.epoch() < epoch_) {
    absl::Status refusal =
        Refuse(absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
               absl::StrCat("the request is of epoch ", context.epoch(),
                            ", but a coordinator of epoch ", epoch_, " has taken over"));
    pb::ErrorDetail detail = *DetailOf(refusal);
    detail.set_epoch(epoch_);
    return WithDetail(std::move(refusal), detail);
  }
  return absl::OkStatus();
}

absl::Status Admission::SetIdentity(uint64_t job, uint64_t epoch, uint32_t index) {
  MutexLock lock(&mutex_);
  if (job_ != 0 && (job_ != job || (state_ != State::kFresh && index_ != index))) {
    return Refuse(absl::StatusCode::kFailedPrecondition, pb::ERROR_OTHER_JOB,
                  "the coordinator has another job or another index for it");
  }
  job_ = job;
  index_ = index;
  epoch_ = std::max(epoch_, epoch);
  return absl::OkStatus();
}

absl::StatusOr<Admission::Ticket> Admission::Admit(const pb::RequestContext& context) {
  MutexLock lock(&mutex_);
  return AdmitLocked(context, /*behind=*/false);
}

absl::StatusOr<Admission::Ticket> Admission::AdmitFence(const pb::RequestContext& context) {
  MutexLock lock(&mutex_);
  return AdmitLocked(context, /*behind=*/true);
}

absl::StatusOr<Admission::Ticket> Admission::AdmitLocked(const pb::RequestContext& context,
                                                         bool behind) {
  MU_RETURN_IF_ERROR(CheckIdentity(context));
  if (state_ == State::kFresh) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  "it has not been configured yet");
  }
  if (context.generation() < generation_) {
    return Refuse(absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
                  absl::StrCat("the request is of generation ", context.generation(),
                               ", but the parameters are of generation ", generation_));
  }
  if (context.generation() > generation_) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  absl::StrCat("its parameters are still of generation ", generation_, ", not ",
                               context.generation()));
  }
  if (state_ != State::kServing) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  state_ == State::kRestoring ? "it is being restored" : "its last restore failed");
  }
  if (behind_ && !behind) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  absl::StrCat("its parameters are of generation ", generation_,
                               ", it may serve from ", least_, " on and waits for that"));
  }
  if (!lease_.Holds(clock_->Now())) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  "its lease from the coordinator has run out, so it does not serve");
  }
  ++working_;
  return Ticket(this);
}

absl::Status Admission::AdmitLook(const pb::RequestContext& context) {
  MutexLock lock(&mutex_);
  return CheckIdentity(context);
}

absl::Status Admission::AdmitControl(const pb::RequestContext& context) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(CheckIdentity(context));
  epoch_ = std::max(epoch_, context.epoch());
  return absl::OkStatus();
}

absl::Status Admission::AdmitConfigure(const pb::RequestContext& context, uint32_t index) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(CheckIdentity(context));
  if (context.generation() < generation_) {
    return Refuse(absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
                  absl::StrCat("the request is of generation ", context.generation(),
                               ", this server of ", generation_));
  }
  if (job_ != 0 && index != index_) {
    return Refuse(absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
                  absl::StrCat("it cannot become server ", index));
  }
  job_ = context.job();
  index_ = index;
  epoch_ = std::max(epoch_, context.epoch());
  return absl::OkStatus();
}

void Admission::Configured(const pb::RequestContext& context) {
  MutexLock lock(&mutex_);
  if (state_ != State::kFresh) return;
  state_ = State::kServing;
  generation_ = context.generation();
  behind_ = generation_ < least_;
}

absl::Status Admission::CheckLease() const {
  const bool holds = lease_.Holds(clock_->Now());
  if (holds && !behind_) return absl::OkStatus();
  MutexLock lock(&mutex_);
  return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                holds ? "its parameters are of an older generation, so it does not acknowledge"
                      : "its lease from the coordinator has run out, so it does not acknowledge");
}

void Admission::RenewLease(int64_t sent_ns, absl::Duration lease, uint64_t least) {
  {
    MutexLock lock(&mutex_);
    least_ = std::max(least_, least);
    // While it restores, what is still under way is of the generation before.
    if (generation_ < least_) behind_ = true;
  }
  lease_.Renew(sent_ns, lease);
}

absl::StatusOr<bool> Admission::BeginRestore(const pb::RequestContext& context,
                                             const std::string& what, bool dirty, bool keep) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(CheckIdentity(context));
  if (state_ == State::kFresh) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  "it has not been configured yet");
  }
  if (state_ == State::kRestoring) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  "another restore is under way");
  }
  if (context.generation() < generation_) {
    return Refuse(absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
                  absl::StrCat("generation ", context.generation(), " cannot follow generation ",
                               generation_));
  }
  if (context.generation() == generation_) {
    if (restored_.has_value() && *restored_ == what) return false;
    if (keep && state_ == State::kServing) return false;
    if (restored_.has_value()) {
      return Refuse(
          absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
          absl::StrCat("generation ", generation_,
                       " was restored from something else already; restore into a newer one"));
    }
    if (dirty && state_ == State::kServing) {
      return Refuse(
          absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
          absl::StrCat("generation ", generation_, " has taken updates; restore into a newer one"));
    }
  }
  if (keep && state_ == State::kBroken) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  "its last restore failed, so it has no state to keep");
  }
  epoch_ = std::max(epoch_, context.epoch());
  generation_ = context.generation();
  restoring_ = what;
  restored_.reset();
  state_ = State::kRestoring;
  // What was admitted before is of the older generation: it ends, unacknowledged.
  behind_ = true;
  while (working_ > 0) left_.Wait(&mutex_);
  behind_ = generation_ < least_;
  return true;
}

void Admission::EndRestore(bool ok) {
  MutexLock lock(&mutex_);
  if (ok) restored_ = restoring_;
  state_ = ok ? State::kServing : State::kBroken;
}

uint32_t Admission::index() const {
  MutexLock lock(&mutex_);
  return index_;
}

bool Admission::configured() const {
  MutexLock lock(&mutex_);
  return state_ != State::kFresh;
}

void Admission::Leave() {
  MutexLock lock(&mutex_);
  if (--working_ == 0) left_.SignalAll();
}

}  // namespace mu
