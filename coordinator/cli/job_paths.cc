#include "coordinator/cli/job_paths.h"

#include <unistd.h>

#include <cerrno>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/env/file.h"
#include "common/env/glob.h"
#include "common/graph/nearest_name.h"

namespace mu {
namespace {

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

// Whether the file can be read; if not, a problem of `place` says why.
bool IsReadable(const std::string& file, const Place& place, ProblemList* problems) {
  const absl::StatusOr<FileInfo> info = GetFileInfo(file);
  if (absl::IsNotFound(info.status())) {
    problems->Add(place, absl::StrCat("there is no file ", file), MissingRemedy(file));
  } else if (!info.ok()) {
    problems->Add(place, info.status());
  } else if (info->directory) {
    problems->Add(place, absl::StrCat(file, " is a folder"), absl::StrCat("write ", file, "/*"));
  } else if (::access(file.c_str(), R_OK) != 0) {
    problems->Add(place, ErrnoToStatus(errno, "read", file));
  } else {
    return true;
  }
  return false;
}

}  // namespace

void ResolveFiles(const std::string& key, const std::string& directory, FilesAre where,
                  const KeyPlaces& places, pb::SourceProto* source, ProblemList* problems) {
  const std::vector<std::string> written(source->files().begin(), source->files().end());
  std::set<std::string> seen;
  source->clear_files();
  for (size_t i = 0; i < written.size(); ++i) {
    const std::string item = absl::StrCat(key, ".files[", i, "]");
    if (written[i].empty() || places.IsBad(item)) continue;
    const std::string path = JoinPath(directory, written[i]);
    const Place& place = places.Find(item);
    absl::StatusOr<std::vector<std::string>> paths = ExpandFiles(path);
    if (!paths.ok() && where == FilesAre::kNotRead) {
      paths = std::vector<std::string>{path};
    } else if (absl::IsNotFound(paths.status())) {
      problems->Add(place, absl::StrCat("no file matches ", path),
                    where == FilesAre::kHere ? MissingRemedy(path)
                                             : "patterns are expanded here: name the files one by "
                                               "one if only the workers' machines have them");
      continue;
    } else if (!paths.ok()) {
      problems->Add(place, paths.status());
      continue;
    }
    for (const std::string& file : *paths) {
      if (!seen.insert(file).second) continue;  // two patterns that overlap name it once
      if (const std::string name = ValidUtf8(file); name != file) {
        problems->Add(place, absl::StrCat("the name of the file ", name, " is not UTF-8"),
                      "rename it");
        continue;
      }
      if (where != FilesAre::kHere || IsReadable(file, place, problems)) source->add_files(file);
    }
  }
}

}  // namespace mu
