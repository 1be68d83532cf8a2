// What users write to describe a column of csv, jsonl or tfrecord that needs more than a name:
//
//   mu::Csv({"a.csv"}).Header().Column(mu::HashColumn("tags", 1000).Several("|").Length(20))
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/dataset.pb.h"

namespace mu {

// docs/reference/readers.md has the meaning of each setting, and of missing fields.
class ColumnSpec {
 public:
  ColumnSpec(std::string name, muster::CsvColumnProto::Kind kind);
  explicit ColumnSpec(muster::CsvColumnProto proto) : proto_(std::move(proto)) {}

  // Where the field is, if not the one of the column's own name.
  ColumnSpec& Field(std::string field);  // name in the header, key of the object, feature
  ColumnSpec& At(int index);             // csv: place in the line, from 0
  ColumnSpec& Required();                // a missing field makes the record bad
  ColumnSpec& MissingValue(float value);
  ColumnSpec& MissingId(int64_t id);
  // (number - mean) / stddev.
  ColumnSpec& Standardise(double mean, double stddev);
  // Of hashes: columns of one seed and number of buckets share ids.
  ColumnSpec& Seed(uint64_t seed);
  // The field has several values: csv with this separator, jsonl an array, tfrecord a list.
  ColumnSpec& Several(std::string separator = "|");
  // Of a list in csv: each value is VALUE, this character and its weight.
  ColumnSpec& WeightsAfter(std::string separator);
  // Of a list in jsonl and tfrecord: the field with as many weights.
  ColumnSpec& WeightsFrom(std::string field);
  // Several values as a sequence of this length.
  ColumnSpec& Length(uint32_t length);
  ColumnSpec& Padding(int64_t id);
  ColumnSpec& KeepLast();  // of more values than the length, not the first
  // Several numbers, always so many.
  ColumnSpec& Shape(const std::vector<int64_t>& shape);

  const muster::CsvColumnProto& proto() const { return proto_; }

 private:
  muster::CsvColumnProto proto_;
};

ColumnSpec NumberColumn(std::string name);
ColumnSpec IdColumn(std::string name, int64_t bound = 0);  // ids are below it; 0: no bound
ColumnSpec HashColumn(std::string name, int64_t buckets);
ColumnSpec LabelColumn(std::string name, const std::vector<std::string>& positive);
ColumnSpec ClassColumn(std::string name, const std::vector<std::string>& classes);
// One text a line; the coordinator reads the file.
ColumnSpec VocabularyColumn(std::string name, std::string file, uint32_t oov_buckets = 1);
ColumnSpec BucketColumn(std::string name, const std::vector<double>& boundaries);
ColumnSpec CrossColumn(std::string name, const std::vector<std::string>& of, int64_t buckets);

}  // namespace mu
