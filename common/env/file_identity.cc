#include "common/env/file_identity.h"

#include <sys/stat.h>

#include <climits>
#include <cstdlib>

#include "common/env/file.h"

namespace mu {

FileIdentity::FileIdentity(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    file_.emplace(info.st_dev, info.st_ino);
  } else {
    path_ = PathInRealFolder(path);
  }
}

std::string PathInRealFolder(const std::string& path) {
  const std::string absolute = AbsolutePath(path).value_or(path);
  std::string folder = DirectoryOf(absolute), rest = BaseName(absolute);
  char real[PATH_MAX];
  while (::realpath(folder.c_str(), real) == nullptr) {
    if (folder == "/" || folder == ".") return absolute;
    rest = JoinPath(BaseName(folder), rest);
    folder = DirectoryOf(folder);
  }
  return JoinPath(real, rest);
}

}  // namespace mu
