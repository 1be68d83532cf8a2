#include "common/graph/dataset_schema.h"

#include "common/base/status.h"
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

void AddCsvColumn(const pb::CsvColumnProto& proto, std::vector<pb::ColumnSchema>* columns) {
  const bool is_id =
      proto.kind() == pb::CsvColumnProto::ID || proto.kind() == pb::CsvColumnProto::HASH;
  if (is_id && !proto.separator().empty()) {
    columns->push_back(Column(proto.name() + ".values", kInt64, {kUnknownDim}));
    columns->push_back(Column(proto.name() + ".splits", kInt32, {kUnknownDim}));
  } else {
    columns->push_back(Column(proto.name(), is_id ? kInt64 : kFloat32, {kUnknownDim}));
  }
}

}  // namespace

std::vector<pb::ColumnSchema> SchemaOf(const pb::DatasetProto& dataset) {
  std::vector<pb::ColumnSchema> columns;
  if (dataset.has_criteo_tsv()) {
    columns.push_back(Column("label", kFloat32, {kUnknownDim}));
    columns.push_back(Column("dense", kFloat32, {kUnknownDim, kCriteoDense}));
    columns.push_back(Column("ids", kInt64, {kUnknownDim, kCriteoCategorical}));
  } else if (dataset.has_libsvm()) {
    columns.push_back(Column("label", kFloat32, {kUnknownDim}));
    columns.push_back(Column("features.values", kInt64, {kUnknownDim}));
    columns.push_back(Column("features.splits", kInt32, {kUnknownDim}));
    columns.push_back(Column("features.weights", kFloat32, {kUnknownDim}));
  } else if (dataset.has_csv()) {
    for (const pb::CsvColumnProto& column : dataset.csv().columns()) AddCsvColumn(column, &columns);
  }
  return columns;
}

}  // namespace mu
