#include "common/env/file_kind.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>

namespace mu {

bool IsSpecialFile(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

std::string LinkTarget(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof(target));
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : "";
}

}  // namespace mu
