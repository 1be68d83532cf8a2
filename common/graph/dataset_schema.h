// The columns that a dataset's batches have. The front end types its batches by it, the readers
// fill them by it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "proto/dataset.pb.h"

namespace mu {

// In the order of proto/dataset.proto (criteo_tsv: label unless unlabelled, dense, ids; csv, jsonl,
// tfrecord, arrays: as their columns are listed, each of the forms that CsvColumnProto describes).
// Empty if no format is set.
std::vector<muster::ColumnSchema> SchemaOf(const muster::DatasetProto& dataset);

using FieldColumnList = google::protobuf::RepeatedPtrField<muster::CsvColumnProto>;

// The columns of csv, jsonl and tfrecord; none of other formats.
const FieldColumnList& FieldColumnsOf(const muster::DatasetProto& dataset);
FieldColumnList* MutableFieldColumnsOf(muster::DatasetProto* dataset);  // null: none

// Two columns that take the same name: a list X takes X.values, X.splits and X.weights, with
// weights or without, a sequence X takes X and X.length, all others their own name.
struct NameClash {
  int column = 0;
  int earlier = 0;
  std::string name;
};
// Of columns whose own names differ: for each one at most, in their order.
std::vector<NameClash> NameClashesOf(const FieldColumnList& columns);
// "the columns A and B both take the name ...: ...".
std::string ToText(const NameClash& clash, const FieldColumnList& columns);
inline constexpr char kNameClashRemedy[] =
    "rename one of the two; its `field` says what it is read from";

// The list of a column of kind TEXT with what the field of `column` holds.
std::string TextColumnOf(const std::string& column);
// The list of a field of libffm.
std::string LibffmColumnOf(int64_t field);

// A label that is 1 where its text is one of some.
struct TextLabel {
  int index = 0;  // as a FieldObserver counts columns
  std::string name;
  const google::protobuf::RepeatedPtrField<std::string>* positive = nullptr;  // the dataset's
};
std::vector<TextLabel> TextLabelsOf(const muster::DatasetProto& dataset);

// Bounds of the ids that the format itself gives, by column; those of field columns: IdBoundOf.
std::map<std::string, int64_t> IdBoundsOfFormat(const muster::DatasetProto& dataset);

// The column's values are int64.
bool IsIds(const muster::CsvColumnProto& column);
bool HasSeveralValues(const muster::CsvColumnProto& column);  // a separator or `list`
bool IsWeighted(const muster::CsvColumnProto& column);
// All ids of the column are below it, those for missing values and padding too; 0: not known.
int64_t IdBoundOf(const muster::CsvColumnProto& column);

inline constexpr int kCriteoDense = 13;
inline constexpr int kCriteoCategorical = 26;

}  // namespace mu
