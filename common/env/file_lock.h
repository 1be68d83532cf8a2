// A lock that processes take on a file, for as long as they live: the kernel releases it whatever
// ends them. Not thread safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/env/unique_fd.h"

namespace mu {

class FileLock {
 public:
  // Makes the file if there is none, and never waits: held() says whether nobody else had it.
  // Where the file system knows no locks, it counts as held.
  absl::Status Take(const std::string& path);
  bool held() const { return held_; }

 private:
  UniqueFd fd_;
  bool held_ = false;
};

}  // namespace mu
