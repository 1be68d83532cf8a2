#include "worker/core/refusal.h"

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

absl::Status OfWorker(const absl::Status& status, pb::ErrorKind kind) {
  pb::ErrorDetail detail;
  detail.set_kind(kind);
  detail.set_role(pb::ROLE_WORKER);
  return WithDetail(status, detail);
}

}  // namespace

absl::Status WorkerRefusal(pb::ErrorKind kind, const std::string& message) {
  return OfWorker(absl::FailedPreconditionError(message), kind);
}

absl::Status NotRegistered() {
  return OfWorker(absl::UnavailableError(
                      "this worker's coordinator has not told it yet to which job it belongs"),
                  pb::ERROR_MACHINE);
}

absl::Status TakenOver(uint64_t epoch) {
  return OfWorker(
      absl::CancelledError(absl::StrCat("epoch ", epoch, " of the coordinator took over")),
      pb::ERROR_STALE);
}

}  // namespace mu
