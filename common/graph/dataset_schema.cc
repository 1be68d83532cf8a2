#include "common/graph/dataset_schema.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/limits.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace mu {
namespace {

pb::ColumnSchema Column(const std::string& name, DType dtype, const Shape& shape) {
  pb::ColumnSchema column;
  column.set_name(name);
  column.set_dtype(dtype);
  *column.mutable_shape() = shape.ToProto();
  return column;
}

void AddList(const std::string& name, bool weighted, std::vector<pb::ColumnSchema>* columns) {
  columns->push_back(Column(name + ".values", kInt64, {kUnknownDim}));
  columns->push_back(Column(name + ".splits", kInt32, {kUnknownDim}));
  if (weighted) columns->push_back(Column(name + ".weights", kFloat32, {kUnknownDim}));
}

// Of a dataset that was not checked, too.
int64_t LibffmFieldsOf(const pb::DatasetProto& dataset) {
  return std::min(dataset.libffm().fields(), kMostLibffmFields);
}

void AddFieldColumn(const pb::CsvColumnProto& proto, std::vector<pb::ColumnSchema>* columns) {
  const DType dtype = IsIds(proto) ? kInt64 : kFloat32;
  if (proto.length() > 0) {
    columns->push_back(Column(proto.name(), dtype, {kUnknownDim, int64_t{proto.length()}}));
    columns->push_back(Column(proto.name() + ".length", kInt64, {kUnknownDim}));
  } else if (proto.kind() == pb::CsvColumnProto::TEXT ||
             (IsIds(proto) && HasSeveralValues(proto))) {
    AddList(proto.name(), IsWeighted(proto), columns);
  } else {
    Shape shape({kUnknownDim});
    for (const int64_t size : proto.shape()) shape.Append(size);
    columns->push_back(Column(proto.name(), dtype, shape));
  }
}

}  // namespace

std::vector<pb::ColumnSchema> SchemaOf(const pb::DatasetProto& dataset) {
  std::vector<pb::ColumnSchema> columns;
  if (dataset.has_criteo_tsv()) {
    if (!dataset.criteo_tsv().unlabelled())
      columns.push_back(Column("label", kFloat32, {kUnknownDim}));
    columns.push_back(Column("dense", kFloat32, {kUnknownDim, kCriteoDense}));
    columns.push_back(Column("ids", kInt64, {kUnknownDim, kCriteoCategorical}));
  } else if (dataset.has_libsvm()) {
    if (!dataset.libsvm().unlabelled()) columns.push_back(Column("label", kFloat32, {kUnknownDim}));
    AddList("features", /*weighted=*/true, &columns);
  } else if (dataset.has_libffm()) {
    if (!dataset.libffm().unlabelled()) columns.push_back(Column("label", kFloat32, {kUnknownDim}));
    for (int64_t field = 0; field < LibffmFieldsOf(dataset); ++field)
      AddList(LibffmColumnOf(field), /*weighted=*/true, &columns);
  } else if (dataset.has_arrays()) {
    for (const pb::ArrayColumnProto& column : dataset.arrays().columns()) {
      Shape shape({kUnknownDim});
      for (const int64_t size : column.shape()) shape.Append(size);
      columns.push_back(Column(column.name(), column.dtype(), shape));
    }
  } else {
    for (const pb::CsvColumnProto& column : FieldColumnsOf(dataset))
      AddFieldColumn(column, &columns);
  }
  return columns;
}

const FieldColumnList& FieldColumnsOf(const pb::DatasetProto& dataset) {
  if (dataset.has_jsonl()) return dataset.jsonl().columns();
  if (dataset.has_tfrecord()) return dataset.tfrecord().columns();
  return dataset.csv().columns();  // those of the default message are none
}

std::vector<NameClash> NameClashesOf(const FieldColumnList& columns) {
  std::vector<NameClash> clashes;
  std::map<std::string, int> owners;
  for (int i = 0; i < columns.size(); ++i) {
    std::vector<pb::ColumnSchema> tensors;
    AddFieldColumn(columns[i], &tensors);
    std::set<std::string> names;
    for (const pb::ColumnSchema& tensor : tensors) names.insert(tensor.name());
    // Of a list without weights too: it would look like one with weights.
    if (names.contains(columns[i].name() + ".splits")) names.insert(columns[i].name() + ".weights");
    for (const std::string& name : names) {
      const int owner = owners.emplace(name, i).first->second;
      const bool told = !clashes.empty() && clashes.back().column == i;
      if (!told && columns[owner].name() != columns[i].name())
        clashes.push_back({.column = i, .earlier = owner, .name = name});
    }
  }
  return clashes;
}

std::string ToText(const NameClash& clash, const FieldColumnList& columns) {
  return absl::StrCat("the columns ", columns[clash.earlier].name(), " and ",
                      columns[clash.column].name(), " both take the name ", clash.name,
                      ": a list takes NAME.values, NAME.splits and NAME.weights, a sequence "
                      "NAME.length");
}

FieldColumnList* MutableFieldColumnsOf(pb::DatasetProto* dataset) {
  if (dataset->has_csv()) return dataset->mutable_csv()->mutable_columns();
  if (dataset->has_jsonl()) return dataset->mutable_jsonl()->mutable_columns();
  if (dataset->has_tfrecord()) return dataset->mutable_tfrecord()->mutable_columns();
  return nullptr;
}

std::string TextColumnOf(const std::string& column) { return column + ".text"; }
std::string LibffmColumnOf(int64_t field) { return absl::StrCat("field_", field); }

std::vector<TextLabel> TextLabelsOf(const pb::DatasetProto& dataset) {
  std::vector<TextLabel> labels;
  int index = 0;
  for (const pb::CsvColumnProto& column : FieldColumnsOf(dataset)) {
    if (column.kind() == pb::CsvColumnProto::LABEL)
      labels.push_back({index, column.name(), &column.positive()});
    ++index;
  }
  const auto first = [&](const auto& format) {
    if (!format.unlabelled() && !format.positive().empty())
      labels.push_back({0, "label", &format.positive()});
  };
  if (dataset.has_libsvm()) first(dataset.libsvm());
  if (dataset.has_libffm()) first(dataset.libffm());
  return labels;
}

std::map<std::string, int64_t> IdBoundsOfFormat(const pb::DatasetProto& dataset) {
  std::map<std::string, int64_t> bounds;
  if (dataset.has_libsvm()) bounds["features"] = dataset.libsvm().features();
  for (int64_t field = 0; field < LibffmFieldsOf(dataset); ++field)
    bounds[LibffmColumnOf(field)] = dataset.libffm().features();
  return bounds;
}

bool IsIds(const pb::CsvColumnProto& column) {
  return column.kind() != pb::CsvColumnProto::NUMBER && column.kind() != pb::CsvColumnProto::LABEL;
}

bool HasSeveralValues(const pb::CsvColumnProto& column) {
  return (!column.separator().empty() || column.list()) &&
         column.kind() != pb::CsvColumnProto::LABEL && column.kind() != pb::CsvColumnProto::CROSS;
}

bool IsWeighted(const pb::CsvColumnProto& column) {
  return !column.weight_separator().empty() || !column.weight_field().empty();
}

int64_t IdBoundOf(const pb::CsvColumnProto& column) {
  int64_t bound = 0;
  switch (column.kind()) {
    case pb::CsvColumnProto::ID:
    case pb::CsvColumnProto::HASH:
    case pb::CsvColumnProto::CROSS:
      bound = column.buckets();
      break;
    case pb::CsvColumnProto::CLASS:
      bound = column.classes_size();
      break;
    case pb::CsvColumnProto::VOCABULARY:
      if (column.vocabulary().empty()) return 0;
      bound = std::count(column.vocabulary().begin(), column.vocabulary().end(), '\n') +
              int64_t{column.oov_buckets()};
      break;
    case pb::CsvColumnProto::BUCKET:  // the last is that of a missing value
      bound = column.boundaries_size() + (column.has_missing_id() ? 1 : 2);
      break;
    default:
      return 0;
  }
  if (bound == 0) return 0;
  if (column.has_missing_id()) bound = std::max(bound, column.missing_id() + 1);
  if (column.length() > 0) bound = std::max(bound, column.padding() + 1);
  return bound;
}

}  // namespace mu
