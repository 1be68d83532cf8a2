#include "coordinator/cluster/checkpoint_link.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"

namespace mu {
namespace {

// The numbers N of folders PATH.N.
absl::StatusOr<std::vector<uint64_t>> Numbers(const std::string& path) {
  MU_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(DirectoryOf(path)));
  std::vector<uint64_t> numbers;
  for (const std::string& name : names) {
    absl::string_view digits = name;
    uint64_t number = 0;
    if (absl::ConsumePrefix(&digits, BaseName(path) + ".") && absl::SimpleAtoi(digits, &number))
      numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

absl::StatusOr<std::string> ClaimLinkedCheckpoint(const std::string& path) {
  MU_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(path)));
  MU_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, Numbers(path));
  uint64_t number = numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
  while (true) {
    std::string folder = absl::StrCat(path, ".", ++number);
    if (::mkdir(folder.c_str(), 0777) == 0) return folder;
    if (errno != EEXIST) return ErrnoToStatus(errno, "make the directory", folder);
  }
}

absl::Status LinkCheckpoint(const std::string& path, const std::string& folder) {
  const std::string link = path + ".link";
  MU_RETURN_IF_ERROR(RemoveTree(link));
  if (::symlink(BaseName(folder).c_str(), link.c_str()) != 0)
    return ErrnoToStatus(errno, "make the link", link);
  struct stat info = {};
  const bool is_folder = ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  const int renamed =
      is_folder ? ::renameat2(AT_FDCWD, link.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE)
                : ::rename(link.c_str(), path.c_str());
  if (renamed != 0) return ErrnoToStatus(errno, "replace", path);
  MU_RETURN_IF_ERROR(SyncDirectory(DirectoryOf(path)));
  // The folder that it was before has the link's name now.
  if (is_folder) MU_RETURN_IF_ERROR(RemoveCheckpoint(link));
  MU_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, Numbers(path));
  for (const uint64_t number : numbers) {
    const std::string other = absl::StrCat(path, ".", number);
    if (other != folder) MU_RETURN_IF_ERROR(RemoveCheckpoint(other));
  }
  return absl::OkStatus();
}

}  // namespace mu
