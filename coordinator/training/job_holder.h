// Who trains in a job_dir, or follows a run (followed_run.h): the text that a coordinator writes
// into the file that it locks for as long as it lives, job_dir/lock or RUN/followed/lock. And
// whether another run may have the job_dir meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mu {

struct JobHolder {
  uint64_t job = 0;   // its JobFingerprint; 0: not known
  int64_t pid = 0;    // 0: not known
  std::string host;   // empty: not known
  std::string since;  // for people; empty: not known
};

// This process, from now on.
JobHolder ThisHolder(uint64_t job);

std::string ToText(const JobHolder& holder);
// What `text` does not say stays not known.
JobHolder ParseJobHolder(absl::string_view text);
// "a coordinator (process 4711 on node-3)", as far as that is known.
std::string HolderName(const JobHolder& holder);

// OK if a run of job `job` may replace the holder of `job_dir`, which lives: `take_over` was asked
// for, and the job is the same. Otherwise INVALID_ARGUMENT, with the holder and the remedy.
absl::Status MayReplace(const JobHolder& holder, uint64_t job, bool take_over,
                        const std::string& job_dir);

}  // namespace mu
