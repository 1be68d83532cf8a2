// What the fields of a file's first records hold: whether they hold anything, and whether the
// texts are in their vocabularies. For finding columns that are read from the wrong field.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/records/field_observer.h"
#include "common/records/label_texts.h"
#include "common/records/vocabulary.h"
#include "proto/dataset.pb.h"

namespace mu {

// Of one column.
struct FieldCounts {
  uint64_t present = 0;  // values; of a list each
  uint64_t missing = 0;  // fields
  // Of a column of kind vocabulary whose other texts have ids of their own:
  uint64_t outside = 0;       // values that are none of its texts
  uint64_t if_trimmed = 0;    // of these: they would be without the spaces around them
  std::string first_outside;  // the first of these
};

// Of csv, jsonl and tfrecord. Not thread safe.
class FirstValues final : public FieldObserver {
 public:
  // The dataset's vocabularies must have been read.
  explicit FirstValues(const muster::DatasetProto& dataset);

  void OnText(int column, absl::string_view text) override;
  void OnNumber(int column, double number) override;
  void OnMissing(int column) override;

  const LabelTexts& labels() const { return labels_; }
  // By the name of the column.
  std::map<std::string, FieldCounts> counts() const;

 private:
  LabelTexts labels_;
  std::vector<std::string> names_;
  std::vector<FieldCounts> counts_;
  std::map<int, std::unique_ptr<Vocabulary>> vocabularies_;
};

void Add(const std::map<std::string, FieldCounts>& more, std::map<std::string, FieldCounts>* all);

// Adds the names of a record's fields, of jsonl and tfrecord; as far as the record is good.
void AddFieldNames(const muster::DatasetProto& dataset, absl::string_view record,
                   std::set<std::string>* names);

// Why all values of this column are missing: "none of the first 100 records has a field \"ratng\";
// did you mean \"rating\"?". `fields`: the names of all fields of these records; empty where fields
// have none. Empty: some value is not missing.
std::string WhyAllMissing(const muster::CsvColumnProto& column, const FieldCounts& counts,
                          const std::set<std::string>& fields);

// What is to be said of a vocabulary that has (nearly) none of the texts; empty: nothing.
std::string WhyAllOutside(const muster::CsvColumnProto& column, const FieldCounts& counts,
                          bool can_trim);

}  // namespace mu
