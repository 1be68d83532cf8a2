#include "coordinator/training/check_files.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "absl/algorithm/container.h"
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
// Past so many, one reads on only in vain: the same mistake is in every file.
constexpr size_t kMostProblems = 20;

bool AllReadable(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (access(path.c_str(), R_OK) != 0) return false;
  }
  return true;
}

}  // namespace

NonePositive LookForPositives(const pb::DatasetProto& dataset) {
  pb::DatasetProto expanded = dataset;
  if (!ReadVocabularies(&expanded).ok() || !CheckFormat(expanded).ok()) return {};
  if (!ExpandDatasetFiles(&expanded).ok()) return {};
  NonePositive result;
  result.all = true;
  std::map<std::string, LabelTexts::Found> labels;
  for (int i = 0; i < expanded.files_size(); ++i) {
    const std::vector<std::string> parts = PartsOfFile(expanded, i);
    if (!AllReadable(parts)) {
      result.all = false;
      continue;
    }
    const FirstRecords read = ReadUntilPositive(expanded, parts);
    result.all = result.all && read.problems.empty();
    Add(read.labels, &labels);
    if (!absl::c_any_of(labels, [](const auto& label) { return label.second.positives == 0; }))
      return {};
  }
  for (const auto& [name, found] : labels) {
    if (!HasNoPositive(found)) continue;
    absl::StrAppend(&result.why, result.why.empty() ? "" : "; ", "column ", name, ": ",
                    NoneIsPositive(found));
  }
  return result;
}

std::vector<std::string> CheckFiles(const pb::DatasetProto& dataset, bool files_elsewhere,
                                    const std::vector<std::string>& binary) {
  std::vector<std::string> problems;
  pb::DatasetProto expanded = dataset;
  absl::Status sound = ReadVocabularies(&expanded);
  if (sound.ok()) sound = CheckFormat(expanded);
  if (!sound.ok()) return {std::string(sound.message())};
  // What is left is looked at all the same, unless files would be paired wrongly.
  const bool paired = ExpandDatasetFiles(&expanded, &problems).ok() || dataset.companions().empty();
  const int files = paired ? expanded.files_size() : 0;
  uint64_t records = 0, good = 0;
  std::string none_good;
  std::map<std::string, LabelTexts::Found> labels;
  std::string not_binary;
  bool unseen = false;
  for (int i = 0; i < files && problems.size() < kMostProblems; ++i) {
    const std::vector<std::string> parts = PartsOfFile(expanded, i);
    if (files_elsewhere && !AllReadable(parts)) {
      unseen = true;
      continue;
    }
    FirstRecords first =
        ReadFirstRecords(expanded, parts, i < kWellReadFiles ? kWellRead : 1, binary);
    records += first.records;
    good += first.good;
    if (none_good.empty()) none_good = first.none_good;
    Add(first.labels, &labels);
    for (std::string& problem : first.problems) problems.push_back(std::move(problem));
    // The first says what is to be changed in the job, for all files.
    if (not_binary.empty()) not_binary = first.not_binary;
  }
  if (good == 0 && !none_good.empty()) problems.push_back(none_good);
  if (!not_binary.empty()) problems.push_back(not_binary);
  // Positive labels may be rare, and come further behind: then the files are read on. A text that
  // is one but for a space is a mistake.
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
