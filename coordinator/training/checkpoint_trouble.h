// What a user is told of checkpoints that fail in the background: each cause once until one
// succeeds, and that they succeed again. Pure: the time is handed in. Not thread safe.
//
// A cause is a status code: the messages of one full disk name another folder each time. One that
// was ended by something that passes (a lost server, UNAVAILABLE) is tried again soon, and is told
// only when several of these follow each other. A disk that is full now and then is not told of for
// ever: after kMostTimes only the log says more.
#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace mu {

class CheckpointTrouble {
 public:
  static constexpr int kMostTimes = 10;
  static constexpr int kPassing = 3;  // that follow each other

  explicit CheckpointTrouble(absl::Time begun) : since_(begun) {}

  // One has failed. A warning; empty: there is nothing new to tell.
  std::string Failed(absl::Time now, const absl::Status& status) {
    if (status.ok() || absl::IsCancelled(status)) return "";
    if (absl::IsUnavailable(status) && ++passing_ < kPassing) return "";
    if (times_ == kMostTimes || !told_.insert(status.code()).second) return "";
    return absl::StrCat("a checkpoint failed, training goes on: ", status.message(),
                        "; what was trained in the last ", Since(now), " is not saved: ",
                        newest_.empty() ? "none was taken since the coordinator started"
                                        : absl::StrCat("the newest checkpoint is ", newest_),
                        times_ + 1 == kMostTimes ? "; from now on only the log says more" : "");
  }
  // One is complete, in that directory. The same.
  std::string Succeeded(absl::Time now, const std::string& directory) {
    std::string text;
    if (!told_.empty()) {
      ++times_;
      text = absl::StrCat("a checkpoint has succeeded again, the first in ", Since(now), ": ",
                          directory);
    }
    told_.clear();
    passing_ = 0;
    since_ = now;
    newest_ = directory;
    return text;
  }

 private:
  std::string Since(absl::Time now) const {
    return absl::FormatDuration(absl::Ceil(now - since_, absl::Seconds(1)));
  }

  absl::Time since_;  // of the newest, or of the beginning
  std::string newest_;
  std::set<absl::StatusCode> told_;  // since the newest
  int passing_ = 0;
  int times_ = 0;  // that such a time is over
};

}  // namespace mu
