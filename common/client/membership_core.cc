#include "common/client/membership_core.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {
namespace {

bool IsMachine(const absl::Status& status) { return KindOf(status) == pb::ERROR_MACHINE; }

}  // namespace

MembershipCore::Call MembershipCore::Send(int64_t now_ns) {
  if (!std::exchange(sent_, true)) last_contact_ns_ = now_ns;
  sent_ns_ = now_ns;
  return registered_ || leaving_ ? Call::kHeartbeat : Call::kRegister;
}

MembershipCore::Next MembershipCore::Registered(int64_t now_ns,
                                                const absl::StatusOr<pb::RegisterReply>& reply) {
  if (!reply.ok()) {
    if (IsMachine(reply.status()) || leaving_) return OutOfReach(now_ns, reply.status());
    return Lost(Annotate(reply.status(), "the coordinator refuses this daemon"));
  }
  if (ever_registered()) {
    if (reply->epoch() < registration_.epoch()) {
      // It was taken for dead and has not noticed yet that a newer one has taken over.
      return OutOfReach(now_ns, absl::UnavailableError("an older coordinator answers"));
    }
    if (reply->job() != registration_.job() ||
        (reply->index() != registration_.index() && !may_move_)) {
      return Lost(absl::FailedPreconditionError(
          "the coordinator that answers now has another job or another place for this daemon"));
    }
  }
  registered_ = true;
  registration_ = *reply;
  last_contact_ns_ = now_ns;
  return Next::kTaken;
}

MembershipCore::Next MembershipCore::Beaten(int64_t now_ns, const absl::Status& status) {
  if (status.ok()) {
    last_contact_ns_ = now_ns;
    return Next::kTaken;
  }
  if (leaving_) return Next::kWait;
  if (KindOf(status) == pb::ERROR_OTHER_JOB) return Lost(status);
  if (IsMachine(status)) return OutOfReach(now_ns, status);
  // The coordinator is there but does not know this daemon, or is a newer one.
  registered_ = false;
  return Next::kAtOnce;
}

MembershipCore::Next MembershipCore::Lost(absl::Status status) {
  lost_ = std::move(status);
  return Next::kLost;
}

MembershipCore::Next MembershipCore::OutOfReach(int64_t now_ns, const absl::Status& error) {
  if (leaving_ || absl::Nanoseconds(now_ns - last_contact_ns_) < orphan_timeout_)
    return Next::kWait;
  const std::string timeout = absl::FormatDuration(orphan_timeout_);
  return Lost(absl::UnavailableError(
      ever_registered() ? absl::StrCat("the coordinator has been out of reach for ", timeout,
                                       "; last error: ", error.message())
      : absl::IsResourceExhausted(error)
          ? absl::StrCat("the coordinator had no place for ", timeout, ": ", error.message())
          : absl::StrCat("the coordinator could not be reached within ", timeout,
                         " (is --coordinator right and is it running?): ", error.message())));
}

}  // namespace mu
