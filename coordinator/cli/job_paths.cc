#include "coordinator/cli/job_paths.h"

#include <unistd.h>

#include <cerrno>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/env/glob.h"
#include "common/graph/nearest_name.h"

namespace mu {
namespace {

bool IsPattern(const std::string& path) { return path.find_first_of("*?[") != std::string::npos; }

// What to do about a path that does not exist: the nearest name beside it, or how far the path does
// exist.
std::string MissingRemedy(const std::string& path) {
  std::string folder = DirectoryOf(path);
  if (const auto names = ListDirectory(folder); names.ok()) {
    const std::string nearest = NearestName(BaseName(path), *names);
    if (!nearest.empty()) return absl::StrCat("did you mean `", nearest, "`?");
    return absl::StrCat("the folder ", folder, " is there: check the name");
  }
  while (folder != "/" && folder != "." && !FileExists(folder)) folder = DirectoryOf(folder);
  return absl::StrCat("the path exists only up to ", folder,
                      "; paths are relative to the job file");
}

}  // namespace

void ResolveFiles(const std::string& key, const std::string& directory, bool must_exist,
                  const KeyPlaces& places, pb::SourceProto* source, ProblemList* problems) {
  const std::vector<std::string> written(source->files().begin(), source->files().end());
  std::set<std::string> seen;
  source->clear_files();
  for (size_t i = 0; i < written.size(); ++i) {
    const std::string item = absl::StrCat(key, ".files[", i, "]");
    if (written[i].empty() || places.IsBad(item)) continue;
    const std::string path = JoinPath(directory, written[i]);
    std::vector<std::string> paths = {path};
    if (IsPattern(path) && !FileExists(path)) {
      absl::StatusOr<std::vector<std::string>> matches = ExpandGlob(path);
      if (matches.ok()) {
        paths = *std::move(matches);
      } else if (must_exist && absl::IsNotFound(matches.status())) {
        problems->Add(places.Find(item), absl::StrCat("no file matches ", path),
                      MissingRemedy(path));
        continue;
      } else if (must_exist) {
        problems->Add(places.Find(item), matches.status());
        continue;
      }
    }
    for (const std::string& file : paths) {
      if (!seen.insert(file).second) continue;  // two patterns that overlap name it once
      source->add_files(file);
      if (!must_exist) continue;
      const auto info = GetFileInfo(file);
      if (!info.ok() && absl::IsNotFound(info.status())) {
        problems->Add(places.Find(item), absl::StrCat("there is no file ", file),
                      MissingRemedy(file));
      } else if (!info.ok()) {
        problems->Add(places.Find(item), info.status());
      } else if (info->directory) {
        problems->Add(places.Find(item), absl::StrCat(file, " is a folder"),
                      absl::StrCat("write ", file, "/*"));
      } else if (::access(file.c_str(), R_OK) != 0) {
        problems->Add(places.Find(item), ErrnoToStatus(errno, "read", file));
      }
    }
  }
}

}  // namespace mu
