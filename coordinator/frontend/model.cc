#include "coordinator/frontend/model.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/dataset_schema.h"
#include "common/graph/nearest_name.h"

namespace mu {
namespace {

std::string Describe(const pb::ColumnSchema& column) {
  return TensorSpec{column.dtype(), Shape(column.shape())}.ToString();
}

}  // namespace

pb::ColumnSchema MakeColumn(const std::string& name, DType dtype, const Shape& shape) {
  pb::ColumnSchema column;
  column.set_name(name);
  column.set_dtype(dtype);
  *column.mutable_shape() = shape.ToProto();
  return column;
}

absl::Status CheckColumns(const Model& model, const pb::DatasetProto& dataset, bool with_label) {
  const std::vector<pb::ColumnSchema> has = SchemaOf(dataset);
  std::vector<pb::ColumnSchema> needs = model.Columns();
  if (!with_label && !needs.empty()) needs.pop_back();
  std::vector<std::string> names;
  for (const pb::ColumnSchema& column : has) names.push_back(column.name());
  std::vector<std::string> problems;
  for (const pb::ColumnSchema& need : needs) {
    const pb::ColumnSchema* found = nullptr;
    for (const pb::ColumnSchema& column : has) {
      if (column.name() == need.name()) found = &column;
    }
    if (found == nullptr) {
      problems.push_back(absl::StrCat("there is no column \"", need.name(), "\" of ",
                                      Describe(need), DidYouMean(need.name(), names)));
    } else if (Describe(*found) != Describe(need)) {
      problems.push_back(absl::StrCat("column \"", need.name(), "\" is ", Describe(*found),
                                      ", the model needs ", Describe(need)));
    }
  }
  const std::map<std::string, int64_t> bounds = model.IdBounds();
  for (const pb::CsvColumnProto& column : dataset.csv().columns()) {
    const auto bound = bounds.find(column.name());
    if (column.kind() != pb::CsvColumnProto::HASH || bound == bounds.end()) continue;
    if (column.buckets() <= bound->second) continue;
    problems.push_back(absl::StrCat("column \"", column.name(), "\" is hashed into ",
                                    column.buckets(), " buckets, the model has rows for ",
                                    bound->second));
  }
  const auto features = bounds.find("features");
  if (dataset.has_libsvm() && features != bounds.end() &&
      dataset.libsvm().features() > features->second) {
    problems.push_back(absl::StrCat("column \"features\" has ids below ",
                                    dataset.libsvm().features(), ", the model has rows for ",
                                    features->second));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "dataset \"", dataset.name(), "\" does not fit the model: ", absl::StrJoin(problems, "; ")));
}

}  // namespace mu
