// How a run shows that it lives: on a terminal one line that changes, into a pipe a plain line
// every few seconds.
#pragma once

#include <cstdio>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "coordinator/training/train_job.h"

namespace mu {

// One line of at most `width` columns, without an end of line; parts that do not fit are left out,
// the last first.
std::string FormatProgress(const Progress& progress, int width);

// "42s", "3:07", "1:02:03".
std::string FormatSeconds(double seconds);

// Thread safe.
class ProgressPrinter {
 public:
  struct Options {
    std::FILE* out = stdout;
    bool terminal = false;
    // Between plain lines; a terminal's line changes at each call
    absl::Duration interval = absl::Seconds(5);
  };
  // For standard output as it is.
  static Options ForStdout();

  explicit ProgressPrinter(const Options& options) : options_(options) {}

  // A plain line comes out at once when the phase changes, else after the interval.
  void Show(const Progress& progress, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // A line that stays.
  void Tell(const std::string& line) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the line on a terminal, so that what is printed next stands below it.
  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Options options_;
  Mutex mutex_;
  absl::Time last_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::string phase_ ABSL_GUARDED_BY(mutex_);
  bool line_open_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mu
