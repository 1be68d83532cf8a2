#include "common/records/first_records.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/printable.h"
#include "common/base/status.h"
#include "common/graph/dataset_schema.h"
#include "common/records/file_records.h"
#include "common/records/foreign_text.h"
#include "common/records/record_selection.h"

namespace mu {
namespace {

using SharedFormat = std::shared_ptr<const RecordFormat>;

constexpr size_t kShownBadRecords = 3;
// So many records tell what a file holds: of a dataset that skips bad ones, the first may be those.
constexpr uint64_t kTelling = 100;
// Names of fields that are kept, about; records may have any number.
constexpr size_t kMostFields = 1000;

// The lines of bad records among the first ones, and what is to be said of them.
struct BadRecords {
  std::vector<std::string> shown;
  uint64_t count = 0;
  bool first = false;  // the file's first record is bad
};

void ReportBadRecords(const pb::DatasetProto& dataset, const std::string& path, bool ended,
                      BadRecords bad, FirstRecords* result) {
  if (bad.count == 0) return;
  if (dataset.on_bad_record() == pb::ON_BAD_RECORD_SKIP) {
    if (result->good > 0) return;
    const std::string which = ended ? absl::StrCat(bad.count) : absl::StrCat("first ", bad.count);
    std::string problem =
        absl::StrCat(path, ": none of its ", which,
                     " records is good; is this the right format? The first: ", bad.shown.front());
    // A short file beside good ones may be a stray line, which is to be skipped.
    ended ? result->none_good = std::move(problem)
          : result->problems.emplace_back(std::move(problem));
    return;
  }
  // Of a line that others do not resemble.
  const bool header = bad.first && result->good > 0 && dataset.has_csv() && !dataset.csv().header();
  if (header) {
    absl::StrAppend(
        &bad.shown[0],
        "; if this line names the columns, write skip_lines: 1, or header: true. If not");
  }
  for (std::string& shown : bad.shown) {
    result->problems.push_back(
        absl::StrCat(shown, header && &shown == &bad.shown[0] ? ", " : "; ",
                     "mend the file, or leave such records out with on_bad_record: skip"));
  }
  if (bad.count > bad.shown.size()) {
    result->problems.push_back(absl::StrCat(path, ": ", bad.count - bad.shown.size(),
                                            " more of its first ", result->records,
                                            " records are bad"));
  }
}

// Labels of two classes, as the model gets them.
class BinaryLabels {
 public:
  BinaryLabels(const pb::DatasetProto& dataset, const std::vector<std::string>& names)
      : dataset_(dataset), names_(names) {}

  bool any() const { return !names_.empty(); }

  void Add(const Batch& record, const std::string& place) {
    for (const std::string& name : names_) {
      const Tensor* const label = record.Find(name);
      if (label == nullptr || label->dtype() != kFloat32 || label->elements() != 1) continue;
      const float value = *label->data<float>();
      ranges_[name].Add({1, value, value});
      if (values_.size() <= kShown) values_.insert(value);
      // What lies between may be meant, as the part of a group that is positive.
      if ((value >= 0 && value <= 1) || !first_.empty()) continue;
      first_ = absl::StrCat(place, ": column ", name, ": ", value,
                            " is neither 0 nor 1, as a label of two classes has to be");
    }
  }

  bool Varied() const {
    return absl::c_all_of(names_, [&](const std::string& name) {
      const auto range = ranges_.find(name);
      return range != ranges_.end() && range->second.least != range->second.most;
    });
  }
  const std::map<std::string, LabelRange>& ranges() const { return ranges_; }

  std::string Problem() const {
    if (first_.empty()) return "";
    std::vector<float> shown(values_.begin(), values_.end());
    shown.resize(std::min(shown.size(), kShown));
    return absl::StrCat(first_, "; the first labels are ", absl::StrJoin(shown, ", "),
                        values_.size() > kShown ? ", ..." : "", "; ", Remedy());
  }

 private:
  static constexpr size_t kShown = 8;

  std::string Remedy() const {
    if (dataset_.has_arrays()) return "write 0 and 1 into the file";
    if (FieldColumnsOf(dataset_).empty()) {
      // -1 and 1 are mostly written with their signs.
      const std::string most =
          *values_.begin() == -1 && *values_.rbegin() == 1 ? "+1" : absl::StrCat(*values_.rbegin());
      return absl::StrCat("name the texts that mean 1: positive: [\"", most, "\"]");
    }
    return values_.size() <= 2
               ? "write kind: label, and name the texts that mean 1: positive: [\"1\"]"
               : "write kind: class and `classes`, there and in the model; or kind: label, and "
                 "name "
                 "the texts that mean 1 in `positive`";
  }

  const pb::DatasetProto& dataset_;
  const std::vector<std::string>& names_;
  std::set<float> values_;  // the first few
  std::map<std::string, LabelRange> ranges_;
  std::string first_;
};

// What reading stops at, before `most` records or the end.
enum class Until { kNothing, kPositive, kVaried };

absl::Status Read(const pb::DatasetProto& dataset, SharedFormat format,
                  absl::Span<const std::string> paths, uint64_t most, Until until,
                  const std::vector<std::string>& binary, FirstRecords* result) {
  if (format == nullptr) {
    MU_ASSIGN_OR_RETURN(format, MakeRecordFormat(dataset));
  }
  MU_RETURN_IF_ERROR(CheckIsText(dataset, paths[0]));
  FileRecords records(format);
  MU_RETURN_IF_ERROR(records.Open(paths, &result->problems));
  if (!result->problems.empty()) return absl::OkStatus();
  const RecordSelection selection(dataset.records());
  ColumnSet columns(SchemaOf(dataset), /*capacity=*/1);
  FirstValues values(dataset);
  columns.set_observer(&values);
  BinaryLabels binary_labels(dataset, binary);
  BadRecords bad;
  absl::Status broken;
  bool ended = false;
  const bool skips = dataset.on_bad_record() == pb::ON_BAD_RECORD_SKIP;
  for (;; ++result->records) {
    if (result->records >= (skips && result->good == 0 ? std::max(most, kTelling) : most)) break;
    if (until == Until::kPositive && values.labels().AllHavePositives()) break;
    if (until == Until::kVaried && binary_labels.Varied()) break;
    const bool keep = selection.Keeps(result->records);
    const absl::StatusOr<FileRecords::Next> next = records.ParseNext(keep, &columns);
    broken = next.status();
    ended = next.ok() && *next == FileRecords::Next::kEnd;
    if (!next.ok() || ended) break;
    if (!keep) continue;
    if (until == Until::kNothing && result->fields.size() < kMostFields)
      AddFieldNames(dataset, records.record(), &result->fields);
    if (*next == FileRecords::Next::kGood) {
      ++result->good;
      if (binary_labels.any()) {
        columns.CommitRow();
        binary_labels.Add(columns.Gather({0}), records.place());
        columns.Clear();
        continue;
      }
    } else if (bad.count++ < kShownBadRecords) {
      bad.first = bad.first || result->records == 0;
      bad.shown.push_back(records.problem());
    }
    columns.DropRow();
  }
  result->labels = values.labels().found();
  result->counts = values.counts();
  result->binary = binary_labels.ranges();
  result->not_binary = binary_labels.Problem();
  ReportBadRecords(dataset, paths[0], ended, std::move(bad), result);
  return broken;
}

FirstRecords ReadFile(const pb::DatasetProto& dataset, SharedFormat format,
                      absl::Span<const std::string> paths, uint64_t most, Until until,
                      const std::vector<std::string>& binary) {
  FirstRecords result;
  const absl::Status status = Read(dataset, std::move(format), paths, most, until, binary, &result);
  if (!status.ok()) result.problems.emplace_back(status.message());
  // Files may hold any bytes, messages may not.
  for (std::string& problem : result.problems) problem = Printable(problem);
  return result;
}

}  // namespace

FirstRecords ReadFirstRecords(const pb::DatasetProto& dataset, absl::Span<const std::string> paths,
                              uint64_t most, const std::vector<std::string>& binary,
                              SharedFormat format) {
  return ReadFile(dataset, std::move(format), paths, most, Until::kNothing, binary);
}

FirstRecords ReadUntilPositive(const pb::DatasetProto& dataset, absl::Span<const std::string> paths,
                               SharedFormat format) {
  return ReadFile(dataset, std::move(format), paths, std::numeric_limits<uint64_t>::max(),
                  Until::kPositive, {});
}

FirstRecords ReadUntilVaried(const pb::DatasetProto& dataset, absl::Span<const std::string> paths,
                             const std::vector<std::string>& binary, SharedFormat format) {
  return ReadFile(dataset, std::move(format), paths, std::numeric_limits<uint64_t>::max(),
                  Until::kVaried, binary);
}

}  // namespace mu
