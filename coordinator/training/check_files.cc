#include "coordinator/training/check_files.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/base/status.h"
#include "common/graph/dataset_schema.h"
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

bool IsOneClass(const LabelRange& range) {
  return range.labels > 0 && range.least == range.most && (range.least == 0 || range.least == 1);
}

// A sentence for each of the columns `binary` all of whose labels are the same class; reads on
// until there are two, or to the end. Nothing, where some file cannot be read from here. `labels`:
// those of text.
std::vector<std::string> LabelsOfOneClass(const pb::DatasetProto& dataset,
                                          const std::shared_ptr<const RecordFormat>& format,
                                          const std::vector<std::string>& binary,
                                          const std::map<std::string, LabelTexts::Found>& labels) {
  std::map<std::string, LabelRange> ranges;
  for (int i = 0; i < dataset.files_size(); ++i) {
    const std::vector<std::string> parts = PartsOfFile(dataset, i);
    if (!AllReadable(parts)) return {};
    const FirstRecords read = ReadUntilVaried(dataset, parts, binary, format);
    if (!read.problems.empty()) return {};
    for (const auto& [name, range] : read.binary) ranges[name].Add(range);
    if (absl::c_none_of(ranges, [](const auto& label) { return IsOneClass(label.second); }))
      return {};
  }
  std::vector<std::string> sentences;
  for (const auto& [name, range] : ranges) {
    const auto text = labels.find(name);
    const bool is_text = text != labels.end();
    // Of texts none of which is positive more is said elsewhere.
    if (!IsOneClass(range) || (is_text && range.least == 0)) continue;
    sentences.push_back(absl::StrCat(
        "column ", name, ": all of ", range.labels, " labels are ",
        is_text ? absl::StrCat("among its `positive` texts, ", QuotedTexts(text->second.positive))
                : absl::StrCat(range.least),
        "; a model of two classes learns nothing from one, and metrics such as auc are "
        "not defined: ",
        is_text ? "name in `positive` those texts alone that mean 1, or give data of "
                  "both classes"
                : "give data of both classes"));
  }
  return sentences;
}

// Columns that are read from a field that the records do not have, and vocabularies of other texts.
void CheckFields(const pb::DatasetProto& dataset, const CheckedLabels& checked,
                 const std::map<std::string, FieldCounts>& counts,
                 const std::set<std::string>& fields, std::vector<std::string>* notes,
                 std::vector<std::string>* problems) {
  for (const pb::CsvColumnProto& column : FieldColumnsOf(dataset)) {
    const auto found = counts.find(column.name());
    if (found == counts.end()) continue;
    const std::string missing = WhyAllMissing(column, found->second, fields);
    if (!missing.empty() && absl::c_linear_search(checked.required, column.name())) {
      problems->push_back(Printable(absl::StrCat(
          "column ", column.name(), ", the model's label: ", missing,
          absl::EndsWith(missing, "?") ? " Or" : "; or",
          " write missing_value (of an id missing_id), if all are meant to be missing here")));
      continue;
    }
    if (notes == nullptr) continue;
    const std::string outside = WhyAllOutside(column, found->second, dataset.has_csv());
    for (const std::string& why : {missing, outside}) {
      if (!why.empty())
        notes->push_back(Printable(absl::StrCat("column ", column.name(), ": ", why)));
    }
  }
}

}  // namespace

NonePositive LookForPositives(const pb::DatasetProto& dataset) {
  pb::DatasetProto expanded = dataset;
  if (!ReadVocabularies(&expanded).ok()) return {};
  const auto format = MakeRecordFormat(expanded);
  if (!format.ok() || !ExpandDatasetFiles(&expanded).ok()) return {};
  NonePositive result;
  result.all = true;
  std::map<std::string, LabelTexts::Found> labels;
  for (int i = 0; i < expanded.files_size(); ++i) {
    const std::vector<std::string> parts = PartsOfFile(expanded, i);
    if (!AllReadable(parts)) {
      result.all = false;
      continue;
    }
    const FirstRecords read = ReadUntilPositive(expanded, parts, *format);
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
                                    const CheckedLabels& checked, std::vector<std::string>* notes) {
  std::vector<std::string> problems;
  pb::DatasetProto expanded = dataset;
  const absl::Status sound = ReadVocabularies(&expanded);
  if (!sound.ok()) return {std::string(sound.message())};
  // What all files share, as a vocabulary, is made once.
  const auto format = MakeRecordFormat(expanded);
  if (!format.ok()) return {std::string(format.status().message())};
  // Files that are not there are told of elsewhere.
  if (absl::c_any_of(dataset.companions(), [&](const pb::CompanionFilesProto& companion) {
        return companion.files().empty() || dataset.files().empty();
      })) {
    return {};
  }
  // What is left is looked at all the same, unless files would be paired wrongly.
  const bool paired = ExpandDatasetFiles(&expanded, &problems).ok() || dataset.companions().empty();
  const int files = paired ? expanded.files_size() : 0;
  uint64_t records = 0, good = 0;
  std::string none_good;
  std::map<std::string, LabelTexts::Found> labels;
  std::map<std::string, FieldCounts> counts;
  std::map<std::string, LabelRange> ranges;
  std::set<std::string> fields;
  std::string not_binary;
  bool unseen = false;
  for (int i = 0; i < files && problems.size() < kMostProblems; ++i) {
    const std::vector<std::string> parts = PartsOfFile(expanded, i);
    if (files_elsewhere && !AllReadable(parts)) {
      unseen = true;
      continue;
    }
    FirstRecords first = ReadFirstRecords(expanded, parts, i < kWellReadFiles ? kWellRead : 1,
                                          checked.binary, *format);
    records += first.records;
    good += first.good;
    if (none_good.empty()) none_good = first.none_good;
    Add(first.labels, &labels);
    Add(first.counts, &counts);
    for (const auto& [name, range] : first.binary) ranges[name].Add(range);
    fields.insert(first.fields.begin(), first.fields.end());
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
  if (problems.empty() &&
      absl::c_any_of(ranges, [](const auto& label) { return IsOneClass(label.second); })) {
    for (std::string& one : LabelsOfOneClass(expanded, *format, checked.binary, labels)) {
      if (checked.trains) {
        problems.push_back(std::move(one));
      } else if (notes != nullptr) {
        notes->push_back(std::move(one));
      }
    }
  }
  CheckFields(expanded, checked, counts, fields, notes, &problems);
  if (problems.size() >= kMostProblems)
    problems.push_back("there may be more problems, these are enough to begin with");
  if (problems.empty() && files > 0 && !unseen && records == 0) {
    problems.push_back(absl::StrCat("there are no records in ",
                                    files == 1 ? expanded.files(0) : "any of the files"));
  }
  return problems;
}

}  // namespace mu
