#include "common/records/dataset_files.h"

#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/env/file_identity.h"
#include "common/env/glob.h"

namespace mu {
namespace {

class Expansion {
 public:
  explicit Expansion(std::vector<std::string>* problems) : problems_(problems) {}

  void Expand(FileList* paths) {
    FileList found;
    for (const std::string& pattern : *paths) {
      if (pattern.empty()) {
        Add(absl::InvalidArgumentError(
            "the name of a data file is empty; name a file, or a pattern such as data/*.csv"));
        continue;
      }
      absl::StatusOr<std::vector<std::string>> matches = ExpandFiles(pattern);
      if (!matches.ok()) {
        Add(matches.status());
        continue;
      }
      for (std::string& match : *matches) *found.Add() = std::move(match);
    }
    paths->Swap(&found);
  }

  void Add(const absl::Status& problem) {
    first_.Update(problem);
    if (problems_ != nullptr) problems_->emplace_back(problem.message());
  }
  const absl::Status& first() const { return first_; }

 private:
  std::vector<std::string>* const problems_;
  absl::Status first_;
};

}  // namespace

void LeaveOutRepeatedFiles(const std::vector<FileList*>& lists) {
  if (lists.empty()) return;
  const int size = lists[0]->size();
  if (absl::c_any_of(lists, [&](const FileList* list) { return list->size() != size; })) {
    for (FileList* list : lists) LeaveOutRepeatedFiles({list});
    return;
  }
  std::set<std::vector<FileIdentity>> seen;
  std::vector<FileList> kept(lists.size());
  for (int n = 0; n < size; ++n) {
    std::vector<FileIdentity> together;
    for (const FileList* list : lists) together.emplace_back(list->Get(n));
    if (!seen.insert(std::move(together)).second) continue;
    for (size_t i = 0; i < lists.size(); ++i) *kept[i].Add() = lists[i]->Get(n);
  }
  for (size_t i = 0; i < lists.size(); ++i) lists[i]->Swap(&kept[i]);
}

absl::Status ExpandDatasetFiles(pb::DatasetProto* dataset, std::vector<std::string>* problems) {
  Expansion expansion(problems);
  expansion.Expand(dataset->mutable_files());
  for (pb::CompanionFilesProto& companion : *dataset->mutable_companions())
    expansion.Expand(companion.mutable_files());
  if (!expansion.first().ok()) return expansion.first();
  for (const pb::CompanionFilesProto& companion : dataset->companions()) {
    if (companion.files_size() == dataset->files_size()) continue;
    expansion.Add(absl::InvalidArgumentError(absl::StrCat(
        "the files that are read together are not equally many: ", dataset->files_size(),
        " beginning with ", dataset->files().empty() ? "(none)" : dataset->files(0), ", but ",
        companion.files_size(), " beginning with ",
        companion.files().empty() ? "(none)" : companion.files(0),
        "; the n-th of one list belongs to the n-th of the other")));
  }
  return expansion.first();
}

std::vector<std::string> PartsOfFile(const pb::DatasetProto& dataset, int index) {
  std::vector<std::string> parts = {dataset.files(index)};
  for (const pb::CompanionFilesProto& companion : dataset.companions())
    parts.push_back(companion.files(index));
  return parts;
}

}  // namespace mu
