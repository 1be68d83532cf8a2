#include "common/records/first_values.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/graph/dataset_schema.h"
#include "common/graph/nearest_name.h"
#include "common/records/json_scanner.h"
#include "common/records/tfrecord_format.h"
#include "common/records/wire_reader.h"

namespace mu {
namespace {

using Column = pb::CsvColumnProto;

// A vocabulary of frequent texts holds most of what is read; one that holds less than this part of
// it is most likely that of another column, or of texts that are written otherwise.
constexpr uint64_t kMostOutside = 20;

void AddKeys(absl::string_view record, std::set<std::string>* names) {
  std::string scratch;
  JsonScanner scanner(record);
  JsonValue key, value;
  bool more = true;
  if (!scanner.Open('{')) return;
  while (scanner.NextKey(&key, &more) && more && scanner.Value(&value)) {
    absl::string_view name;
    if (UnescapeJson(key, &scratch, &name)) names->emplace(name);
  }
}

// Of Example.features.feature, a map: its entries' keys.
void AddFeatures(absl::string_view frame, std::set<std::string>* names) {
  constexpr uint32_t kFeatures = 1, kFeature = 1, kKey = 1;
  WireReader example(frame.substr(kTfrecordHead, frame.size() - kTfrecordFrame));
  while (example.Next()) {
    if (!example.Is(kFeatures, WireReader::kBytes)) continue;
    WireReader entries(example.bytes());
    while (entries.Next()) {
      if (!entries.Is(kFeature, WireReader::kBytes)) continue;
      WireReader entry(entries.bytes());
      while (entry.Next()) {
        if (entry.Is(kKey, WireReader::kBytes)) names->emplace(entry.bytes());
      }
    }
  }
}

}  // namespace

FirstValues::FirstValues(const pb::DatasetProto& dataset) : labels_(dataset) {
  for (const Column& column : FieldColumnsOf(dataset)) {
    if (column.kind() == Column::VOCABULARY && column.oov_buckets() > 0) {
      vocabularies_.emplace(static_cast<int>(names_.size()),
                            std::make_unique<Vocabulary>(column.vocabulary()));
    }
    names_.push_back(column.name());
  }
  counts_.resize(names_.size());
}

void FirstValues::OnText(int column, absl::string_view text) {
  labels_.OnText(column, text);
  if (static_cast<size_t>(column) >= counts_.size()) return;  // a label of a format without fields
  FieldCounts& counts = counts_[static_cast<size_t>(column)];
  ++counts.present;
  const auto vocabulary = vocabularies_.find(column);
  if (vocabulary == vocabularies_.end() || vocabulary->second->Find(text) >= 0) return;
  if (counts.outside++ == 0) counts.first_outside = std::string(text);
  if (vocabulary->second->Find(absl::StripAsciiWhitespace(text)) >= 0) ++counts.if_trimmed;
}

void FirstValues::OnNumber(int column, double /*number*/) {
  if (static_cast<size_t>(column) < counts_.size()) ++counts_[static_cast<size_t>(column)].present;
}

void FirstValues::OnMissing(int column) {
  labels_.OnMissing(column);
  if (static_cast<size_t>(column) < counts_.size()) ++counts_[static_cast<size_t>(column)].missing;
}

std::map<std::string, FieldCounts> FirstValues::counts() const {
  std::map<std::string, FieldCounts> all;
  for (size_t i = 0; i < names_.size(); ++i) all.emplace(names_[i], counts_[i]);
  return all;
}

void Add(const std::map<std::string, FieldCounts>& more, std::map<std::string, FieldCounts>* all) {
  for (const auto& [name, counts] : more) {
    FieldCounts& sum = (*all)[name];
    if (sum.outside == 0) sum.first_outside = counts.first_outside;
    sum.present += counts.present;
    sum.missing += counts.missing;
    sum.outside += counts.outside;
    sum.if_trimmed += counts.if_trimmed;
  }
}

void AddFieldNames(const pb::DatasetProto& dataset, absl::string_view record,
                   std::set<std::string>* names) {
  if (dataset.has_jsonl()) AddKeys(record, names);
  if (dataset.has_tfrecord()) AddFeatures(record, names);
}

std::string WhyAllMissing(const Column& column, const FieldCounts& counts,
                          const std::set<std::string>& fields) {
  constexpr size_t kShown = 12;
  if (counts.present > 0 || counts.missing == 0) return "";
  const std::string& field = column.field().empty() ? column.name() : column.field();
  if (fields.empty() || fields.count(field) != 0) {
    return absl::StrCat("it is missing in all of the first ", counts.missing,
                        " records; is this the right field?");
  }
  const std::vector<std::string> names(fields.begin(), fields.end());
  std::string remedy = DidYouMean(field, names);
  if (remedy.empty()) {
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown));
    remedy = absl::StrCat("; they have ", absl::StrJoin(names.begin(), end, ", "),
                          names.size() > kShown ? ", ..." : "");
  }
  return absl::StrCat("none of the first ", counts.missing, " records has a field \"", field, "\"",
                      remedy);
}

std::string WhyAllOutside(const Column& column, const FieldCounts& counts, bool can_trim) {
  if (counts.outside == 0 || (counts.present - counts.outside) * kMostOutside >= counts.present)
    return "";
  const uint64_t inside = counts.present - counts.outside;
  std::string remedy = "is this the vocabulary of this column?";
  if (counts.if_trimmed > 0) {
    remedy = absl::StrCat("without the spaces around them ", counts.if_trimmed, " would be: ",
                          can_trim ? "write trim: true" : "make the vocabulary of the same texts");
  }
  return absl::StrCat(inside == 0 ? "none" : absl::StrCat("but ", inside), " of the first ",
                      counts.present, " texts is in ", column.vocabulary_file(), ", such as \"",
                      counts.first_outside, "\"; ", remedy);
}

}  // namespace mu
