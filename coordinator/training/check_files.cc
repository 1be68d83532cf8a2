#include "coordinator/training/check_files.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/records/dataset_files.h"
#include "common/records/first_records.h"
#include "common/records/record_format.h"
#include "common/records/vocabulary.h"

namespace mu {
namespace {

// Files of one dataset are mostly alike: the first are read well, of the others the header and one
// record.
constexpr int kWellReadFiles = 4;
constexpr uint64_t kWellRead = 100;
constexpr uint64_t kForLabels = 10'000;
// Past so many, one reads on only in vain: the same mistake is in every file.
constexpr size_t kMostProblems = 20;

bool HasNoPositive(const LabelTexts::Found& found) {
  return found.positives == 0 && found.others > 0;
}

bool AllReadable(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (access(path.c_str(), R_OK) != 0) return false;
  }
  return true;
}

// Among the first `most` records of the first files.
NonePositive LookForPositives(const pb::DatasetProto& expanded, uint64_t most) {
  NonePositive result;
  result.all = expanded.files_size() <= kWellReadFiles;
  std::map<std::string, LabelTexts::Found> labels;
  for (int i = 0; i < std::min(expanded.files_size(), kWellReadFiles); ++i) {
    const std::vector<std::string> parts = PartsOfFile(expanded, i);
    if (!AllReadable(parts)) {
      result.all = false;
      continue;
    }
    const FirstRecords first = ReadFirstRecords(expanded, parts, most);
    Add(first.labels, &labels);
    result.all = result.all && first.records < most && first.problems.empty();
  }
  for (const auto& [name, found] : labels) {
    if (HasNoPositive(found)) {
      absl::StrAppend(&result.why, result.why.empty() ? "" : "; ", "column ", name, ": ",
                      NoneIsPositive(found));
    }
  }
  return result;
}

}  // namespace

NonePositive LookForPositives(const pb::DatasetProto& dataset) {
  pb::DatasetProto expanded = dataset;
  if (!ReadVocabularies(&expanded).ok() || !CheckFormat(expanded).ok()) return {};
  if (!ExpandDatasetFiles(&expanded).ok()) return {};
  // Mostly a few records will do.
  NonePositive result = LookForPositives(expanded, kWellRead);
  return result.why.empty() || result.all ? result : LookForPositives(expanded, kForLabels);
}

std::vector<std::string> CheckFiles(const pb::DatasetProto& dataset, bool files_elsewhere) {
  std::vector<std::string> problems;
  pb::DatasetProto expanded = dataset;
  absl::Status sound = ReadVocabularies(&expanded);
  if (sound.ok()) sound = CheckFormat(expanded);
  if (!sound.ok()) return {std::string(sound.message())};
  // What is left is looked at all the same, unless files would be paired wrongly.
  const bool paired = ExpandDatasetFiles(&expanded, &problems).ok() || dataset.companions().empty();
  const int files = paired ? expanded.files_size() : 0;
  uint64_t records = 0;
  std::map<std::string, LabelTexts::Found> labels;
  bool unseen = false;
  for (int i = 0; i < files && problems.size() < kMostProblems; ++i) {
    const std::vector<std::string> parts = PartsOfFile(expanded, i);
    if (files_elsewhere && !AllReadable(parts)) {
      unseen = true;
      continue;
    }
    FirstRecords first = ReadFirstRecords(expanded, parts, i < kWellReadFiles ? kWellRead : 1);
    records += first.records;
    Add(first.labels, &labels);
    for (std::string& problem : first.problems) problems.push_back(std::move(problem));
  }
  // Positive labels may be rare, and come further behind; a text that is one but for a space is a
  // mistake.
  bool suspicious = false, wrong = false;
  for (const auto& [name, found] : labels) {
    suspicious = suspicious || HasNoPositive(found);
    if (!IsNearlyPositive(found)) continue;
    wrong = true;
    problems.push_back(absl::StrCat("column ", name, ": ", NoneIsPositive(found)));
  }
  if (suspicious && !wrong && problems.empty()) {
    const NonePositive none = LookForPositives(dataset);
    if (none.all && !none.why.empty()) problems.push_back(none.why);
  }
  if (problems.size() >= kMostProblems)
    problems.push_back("there may be more problems, these are enough to begin with");
  if (problems.empty() && files > 0 && !unseen && records == 0) {
    problems.push_back(absl::StrCat("there are no records in ",
                                    files == 1 ? expanded.files(0) : "any of the files"));
  }
  return problems;
}

}  // namespace mu
