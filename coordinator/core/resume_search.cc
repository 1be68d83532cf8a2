#include "coordinator/core/resume_search.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/core/restore_fault.h"

namespace mu {

using Next = ResumeSearch::Next;

Next ResumeSearch::Listed(const absl::StatusOr<std::vector<std::string>>& complete) {
  if (!complete.ok() && !absl::IsNotFound(complete.status())) return Fail(complete.status());
  if (complete.ok()) left_ = *complete;
  return left_.empty() ? Fresh("in") : Next::kRead;
}

Next ResumeSearch::Read(const absl::Status& status, CoordinatorEpoch epoch) {
  if (!status.ok()) return Judge(status);
  return epoch < since_ ? NoneLeft() : Next::kLoad;
}

Next ResumeSearch::Loaded(const absl::Status& status) {
  return status.ok() ? Next::kResume : Judge(status);
}

Next ResumeSearch::Older() {
  left_.pop_back();
  return left_.empty() ? NoneLeft() : Next::kRead;
}

Next ResumeSearch::Judge(const absl::Status& status) {
  if (!IsBadCheckpoint(status)) return Fail(status);
  any_bad_ = true;
  error_ = status;
  return Next::kSkip;
}

Next ResumeSearch::NoneLeft() {
  if (!any_bad_) return Fresh("of this run in");
  return Fail(absl::DataLossError(absl::StrCat(
      "no checkpoint in ", parent_, " is good; the last that was tried: ", error_.message())));
}

Next ResumeSearch::Fresh(const char* what) {
  error_ = absl::NotFoundError(
      absl::StrCat("there is no checkpoint ", what, " ", parent_, " to continue from"));
  return Next::kFresh;
}

Next ResumeSearch::Fail(absl::Status error) {
  error_ = std::move(error);
  return Next::kFail;
}

}  // namespace mu
