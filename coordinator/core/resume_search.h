// Where a job goes on that is started again: at the newest good checkpoint of its own run. A pure
// state machine: what the disk and the servers say comes in, what to do next goes out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace mu {

class ResumeSearch {
 public:
  enum class Next {
    kRead,    // the manifest in folder(); answered by Read
    kLoad,    // what is in folder(), if it fits the job; answered by Loaded or Unfit
    kSkip,    // folder() is known to be bad from now on, error() says why; then Older
    kResume,  // the job goes on from folder()
    kFresh,   // the program begins anew; error() is NOT_FOUND
    kFail,    // error()
  };
  // Checkpoints below `parent` of epochs before `since` are another run's.
  ResumeSearch(std::string parent, CoordinatorEpoch since)
      : parent_(std::move(parent)), since_(since) {}

  // The complete ones, oldest first.
  Next Listed(const absl::StatusOr<std::vector<std::string>>& complete);
  // `epoch`: that the manifest says, if it could be read.
  Next Read(const absl::Status& status, CoordinatorEpoch epoch);
  // It is of another job, or of another program: older ones would be, too.
  Next Unfit(const absl::Status& why) { return Fail(why); }
  Next Loaded(const absl::Status& status);
  Next Older();

  const std::string& folder() const { return left_.back(); }
  const absl::Status& error() const { return error_; }

 private:
  Next Judge(const absl::Status& status);
  Next NoneLeft();
  Next Fresh(const char* what);
  Next Fail(absl::Status error);

  std::string parent_;
  CoordinatorEpoch since_;
  std::vector<std::string> left_;  // the last one is being tried
  bool any_bad_ = false;
  absl::Status error_;  // the last
};

}  // namespace mu
