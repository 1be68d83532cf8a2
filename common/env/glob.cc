#include "common/env/glob.h"

#include <glob.h>

#include <algorithm>
#include <cerrno>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {

absl::StatusOr<std::vector<std::string>> ExpandGlob(const std::string& pattern) {
  // A file whose name happens to hold pattern characters can be named as it is.
  if (const absl::StatusOr<FileInfo> info = GetFileInfo(pattern); info.ok() && !info->directory) {
    return std::vector<std::string>{pattern};
  }
  glob_t matches = {};
  // A folder that is not there holds no file that matches; one that may not be listed is an error.
  const auto gives_up = [](const char*, int error) {
    return error == ENOENT || error == ENOTDIR ? 0 : 1;
  };
  const int result = glob(pattern.c_str(), GLOB_NOSORT, gives_up, &matches);
  std::vector<std::string> files;
  size_t directories = 0;
  for (size_t i = 0; result == 0 && i < matches.gl_pathc; ++i) {
    if (DirectoryExists(matches.gl_pathv[i])) {
      ++directories;
    } else {
      files.emplace_back(matches.gl_pathv[i]);
    }
  }
  globfree(&matches);
  if (result == GLOB_NOSPACE) return absl::ResourceExhaustedError("no memory to list files");
  if (result == GLOB_ABORTED) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot list a directory of \"", pattern, "\"; check its permissions"));
  }
  if (files.empty()) {
    return absl::NotFoundError(absl::StrCat(
        directories > 0 ? "only a directory" : "no file", " matches \"", pattern,
        directories > 0 ? "\"; name the files in it, such as with /*" : "\"; check the path"));
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool IsPattern(absl::string_view name) {
  return name.find_first_of("*?[") != absl::string_view::npos;
}

absl::StatusOr<std::vector<std::string>> ExpandFiles(const std::string& pattern) {
  if (!IsPattern(pattern)) return std::vector<std::string>{pattern};
  return ExpandGlob(pattern);
}

absl::StatusOr<std::vector<std::string>> ExpandGlobs(absl::Span<const std::string> patterns) {
  std::vector<std::string> all;
  absl::flat_hash_set<std::string> seen;
  for (const std::string& pattern : patterns) {
    MU_ASSIGN_OR_RETURN(const std::vector<std::string> files, ExpandGlob(pattern));
    for (const std::string& file : files) {
      if (seen.insert(file).second) all.push_back(file);
    }
  }
  return all;
}

}  // namespace mu
