// A lock that processes take on a file, for as long as they live: the kernel releases it whatever
// ends them. Not thread safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/env/unique_fd.h"

namespace mu {

class FileLock {
 public:
  // Makes the file if there is none, and never waits: held() says whether nobody else had it; then
  // the file says `owner`. Where it cannot be locked (the file system knows no locks, the file is
  // another user's), it counts as held.
  absl::Status Take(const std::string& path, const std::string& owner);
  // Holds the lock whoever had it: a new file takes the old one's place. The former holder is not
  // told, and keeps a file that nobody looks at any more.
  absl::Status TakeOver(const std::string& path, const std::string& owner);

  bool held() const { return held_; }
  // Whether another process has taken over what this one held.
  bool lost() const;
  // Of a lock that is not held: what its holder has written. Empty if the holder has not yet.
  const std::string& owner() const { return owner_; }

 private:
  std::string path_;
  UniqueFd fd_;
  bool held_ = false;
  std::string owner_;
};

}  // namespace mu
