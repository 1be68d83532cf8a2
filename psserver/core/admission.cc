#include "psserver/core/admission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "psserver/core/protections.h"

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

uint64_t Admission::GenerationOf(const pb::RequestContext& context) const {
  return MU_SERVER_BROKEN(fencing) ? std::max(generation_, context.generation())
                                   : context.generation();
}

absl::Status Admission::CheckIdentity(const pb::RequestContext& context) const {
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
  if (context.epoch() < epoch_ && !MU_SERVER_BROKEN(fencing)) {
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
  if (job_ != 0 && (job_ != job || (placed_ && index_ != index))) {
    return Refuse(absl::StatusCode::kFailedPrecondition, pb::ERROR_OTHER_JOB,
                  "the coordinator has another job or another index for it");
  }
  job_ = job;
  index_ = index;
  epoch_ = std::max(epoch_, epoch);
  return absl::OkStatus();
}

absl::Status Admission::Admit(int64_t now_ns, const pb::RequestContext& context) {
  MU_RETURN_IF_ERROR(Check(now_ns, context));
  ++under_way_;
  return absl::OkStatus();
}

absl::Status Admission::AdmitFence(int64_t now_ns, const pb::RequestContext& context) {
  if (!MU_SERVER_BROKEN(late_fences)) {
    MU_RETURN_IF_ERROR(Check(now_ns, context, /*behind=*/true));
  }
  ++under_way_;
  return absl::OkStatus();
}

absl::Status Admission::Check(int64_t now_ns, const pb::RequestContext& context) const {
  return Check(now_ns, context, /*behind=*/false);
}

absl::Status Admission::Check(int64_t now_ns, const pb::RequestContext& context,
                              bool behind) const {
  MU_RETURN_IF_ERROR(CheckIdentity(context));
  if (state_ == State::kFresh) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  "it has not been configured yet");
  }
  const uint64_t generation = GenerationOf(context);
  if (generation < generation_) {
    return Refuse(absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
                  absl::StrCat("the request is of generation ", generation,
                               ", but the parameters are of generation ", generation_));
  }
  if (generation > generation_) {
    return Refuse(
        absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
        absl::StrCat("its parameters are still of generation ", generation_, ", not ", generation));
  }
  if (state_ != State::kServing) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  state_ == State::kRestoring
                      ? "it is being restored"
                      : "it has no state yet, its last restore failed, or its partitions were "
                        "placed anew: restore it");
  }
  if (behind_ && !behind) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  absl::StrCat("its parameters are of generation ", generation_,
                               ", it may serve from ", least_, " on and waits for that"));
  }
  if (!lease_.Holds(now_ns)) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  "its lease from the coordinator has run out, so it does not serve");
  }
  return absl::OkStatus();
}

absl::Status Admission::AdmitLook(const pb::RequestContext& context) const {
  return CheckIdentity(context);
}

absl::Status Admission::AdmitView(const pb::RequestContext& context) const {
  MU_RETURN_IF_ERROR(CheckIdentity(context));
  if (state_ != State::kFresh && context.epoch() <= epoch_) return absl::OkStatus();
  return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                state_ == State::kFresh ? "it has not been configured yet"
                                        : absl::StrCat("the coordinator of epoch ", context.epoch(),
                                                       " has not taken it over yet"));
}

absl::Status Admission::AdmitControl(const pb::RequestContext& context) {
  MU_RETURN_IF_ERROR(CheckIdentity(context));
  epoch_ = std::max(epoch_, context.epoch());
  return absl::OkStatus();
}

absl::Status Admission::AdmitConfigure(const pb::RequestContext& context, uint32_t index) {
  MU_RETURN_IF_ERROR(CheckIdentity(context));
  if (GenerationOf(context) < generation_) {
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
  placed_ = true;
  epoch_ = std::max(epoch_, context.epoch());
  return absl::OkStatus();
}

void Admission::Configured(const pb::RequestContext& context, bool replaced, bool restore_follows) {
  if (state_ == State::kFresh) {
    state_ = restore_follows ? State::kBroken : State::kServing;
    generation_ = context.generation();
    behind_ = generation_ < least_;
  } else if (replaced && state_ == State::kServing) {
    state_ = State::kBroken;
    restored_.reset();
    behind_ = true;  // what is under way changes a state that is gone
  } else if (replaced && state_ == State::kRestoring) {
    replaced_ = true;
  }
}

absl::Status Admission::CheckLease(int64_t now_ns) const {
  const bool holds = lease_.Holds(now_ns);
  if (holds && !behind_) return absl::OkStatus();
  return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                holds ? "its parameters are of an older generation, so it does not acknowledge"
                      : "its lease from the coordinator has run out, so it does not acknowledge");
}

void Admission::RenewLease(int64_t sent_ns, absl::Duration lease, uint64_t least) {
  if (!MU_SERVER_BROKEN(old_generations)) least_ = std::max(least_, least);
  // While it restores, what is still under way is of the generation before.
  if (generation_ < least_) behind_ = true;
  lease_.Renew(sent_ns, lease);
}

absl::StatusOr<bool> Admission::CheckRestore(const pb::RequestContext& context,
                                             const std::string& what, bool dirty, bool keep) const {
  MU_RETURN_IF_ERROR(CheckIdentity(context));
  if (state_ == State::kFresh) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  "it has not been configured yet");
  }
  if (state_ == State::kRestoring) {
    return Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                  "another restore is under way");
  }
  const uint64_t generation = GenerationOf(context);
  if (generation < generation_) {
    return Refuse(
        absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
        absl::StrCat("generation ", generation, " cannot follow generation ", generation_));
  }
  if (generation == generation_) {
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
                  "it has no state to keep: it is new, its last restore failed, or its partitions "
                  "were placed anew");
  }
  return true;
}

void Admission::BeginRestore(const pb::RequestContext& context, const std::string& what) {
  epoch_ = std::max(epoch_, context.epoch());
  generation_ = GenerationOf(context);
  restoring_ = what;
  restored_.reset();
  state_ = State::kRestoring;
  // What was admitted before is of the older generation: it ends, unacknowledged.
  behind_ = true;
}

void Admission::StartRestore() { behind_ = generation_ < least_; }

bool Admission::EndRestore(bool ok) {
  if (std::exchange(replaced_, false)) ok = false;
  if (ok) restored_ = restoring_;
  state_ = ok ? State::kServing : State::kBroken;
  return ok;
}

}  // namespace mu
