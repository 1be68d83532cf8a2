#include "coordinator/cli/job_paths.h"

#include <unistd.h>

#include <cerrno>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/env/file.h"
#include "common/env/file_kind.h"
#include "common/env/glob.h"
#include "common/graph/nearest_name.h"
#include "common/records/dataset_files.h"

namespace mu {
namespace {

// Of a link that leads to nothing, where it leads; otherwise empty.
std::string BrokenLink(const std::string& path) {
  const std::string target = LinkTarget(path);
  if (target.empty() || FileExists(path)) return "";
  return absl::StrCat(path, " is a link to ", target,
                      ", which does not exist: correct the link, or name the file itself");
}

}  // namespace

std::string MissingRemedy(const std::string& path) {
  if (std::string link = BrokenLink(path); !link.empty()) return link;
  std::string folder = DirectoryOf(path);
  if (const auto names = ListDirectory(folder); names.ok()) {
    const std::string nearest = NearestName(BaseName(path), *names);
    if (!nearest.empty()) return absl::StrCat("did you mean `", nearest, "`?");
    return absl::StrCat("the folder ", folder, " is there: check the name");
  }
  for (; folder != "/" && folder != "." && !FileExists(folder); folder = DirectoryOf(folder)) {
    if (std::string link = BrokenLink(folder); !link.empty()) return link;
  }
  return absl::StrCat("the path exists only up to ", folder,
                      "; paths are relative to the job file");
}

namespace {

constexpr char kSpecialRemedy[] = "data is read several times: write it into a file";

// Whether the file can be read; if not, a problem of `place` says why.
bool IsReadable(const std::string& file, const Place& place, ProblemList* problems) {
  const absl::StatusOr<FileInfo> info = GetFileInfo(file);
  if (absl::IsNotFound(info.status())) {
    problems->Add(place, absl::StrCat("there is no file ", file), MissingRemedy(file));
  } else if (!info.ok()) {
    problems->Add(place, info.status());
  } else if (info->directory) {
    problems->Add(place, absl::StrCat(file, " is a folder"), absl::StrCat("write ", file, "/*"));
  } else if (IsSpecialFile(file)) {
    problems->Add(place, absl::StrCat(file, " is a pipe, a socket or a device"), kSpecialRemedy);
  } else if (::access(file.c_str(), R_OK) != 0) {
    problems->Add(place, ErrnoToStatus(errno, "read", file));
  } else {
    return true;
  }
  return false;
}

class Resolver {
 public:
  Resolver(const std::string& directory, FilesAre where, const KeyPlaces& places,
           ProblemList* problems)
      : directory_(directory), where_(where), places_(places), problems_(problems) {}

  // A list of paths and patterns at `key`. What is repeated stays.
  void List(const std::string& key, FileList* files) const {
    const std::vector<std::string> written(files->begin(), files->end());
    std::map<std::string, bool> seen;
    files->Clear();
    for (size_t i = 0; i < written.size(); ++i)
      Item(absl::StrCat(key, "[", i, "]"), written[i], &seen, files);
  }

  // A file that the coordinator itself reads.
  void OwnFile(const std::string& key, bool exists, std::string* path) const {
    if (path->empty() || places_.IsBad(key)) return;
    *path = JoinPath(directory_, *path);
    if (exists && where_ != FilesAre::kNotRead) IsReadable(*path, places_.Find(key), problems_);
  }

 private:
  // `seen`: the files of the list, and whether they are among `files`.
  void Item(const std::string& item, const std::string& written, std::map<std::string, bool>* seen,
            FileList* files) const {
    if (written.empty() || places_.IsBad(item)) return;
    const std::string path = JoinPath(directory_, written);
    const Place& place = places_.Find(item);
    absl::StatusOr<std::vector<std::string>> paths = ExpandFiles(path);
    if (!paths.ok() && where_ == FilesAre::kNotRead) {
      paths = std::vector<std::string>{path};
    } else if (absl::IsNotFound(paths.status())) {
      problems_->Add(place, absl::StrCat("no file matches ", path),
                     where_ == FilesAre::kHere
                         ? MissingRemedy(path)
                         : "patterns are expanded here: name the files one by one if only the "
                           "workers' machines have them");
      return;
    } else if (!paths.ok()) {
      problems_->Add(place, paths.status());
      return;
    }
    for (const std::string& file : *paths) {
      const auto [known, is_new] = seen->emplace(file, false);
      if (!is_new) {  // what is wrong with it has been said
        if (known->second) *files->Add() = file;
        continue;
      }
      if (const std::string name = ValidUtf8(file); name != file) {
        problems_->Add(place, absl::StrCat("the name of the file ", name, " is not UTF-8"),
                       "rename it");
        continue;
      }
      // A file of the cluster's nodes may be here, too.
      const bool look =
          where_ == FilesAre::kHere || (where_ == FilesAre::kElsewhere && IsSpecialFile(file));
      known->second = !look || IsReadable(file, place, problems_);
      if (known->second) *files->Add() = file;
    }
  }

  const std::string& directory_;
  const FilesAre where_;
  const KeyPlaces& places_;
  ProblemList* const problems_;
};

}  // namespace

void ResolveFiles(const std::string& key, const std::string& directory, FilesAre where,
                  bool vocabularies_exist, const KeyPlaces& places, pb::SourceProto* source,
                  ProblemList* problems) {
  const Resolver resolver(directory, where, places, problems);
  resolver.List(key + ".files", source->mutable_files());
  resolver.List(key + ".labels", source->mutable_labels());
  for (int i = 0; i < source->columns_size(); ++i) {
    const std::string column = absl::StrCat(key, ".columns[", i, "]");
    resolver.List(column + ".files", source->mutable_columns(i)->mutable_files());
    if (source->columns(i).has_vocabulary()) {
      resolver.OwnFile(column + ".vocabulary", vocabularies_exist,
                       source->mutable_columns(i)->mutable_vocabulary());
    }
  }
  // Those of one source are read in lockstep.
  std::vector<FileList*> lists;
  const auto add = [&](FileList* list) {
    if (!list->empty()) lists.push_back(list);
  };
  add(source->mutable_files());
  add(source->mutable_labels());
  for (auto& column : *source->mutable_columns()) add(column.mutable_files());
  LeaveOutRepeatedFiles(lists);
}

}  // namespace mu
