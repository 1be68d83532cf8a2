#include "coordinator/frontend/features.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/ops.h"

namespace mu {
namespace {

constexpr int64_t kMaxSize = 1 << 16;
constexpr int64_t kMaxRows = 1'000'000'000'000;

std::optional<Feature::Kind> KindOf(const std::string& kind) {
  if (kind.empty() || kind == "number") return Feature::kNumber;
  if (kind == "id") return Feature::kId;
  if (kind == "list") return Feature::kList;
  if (kind == "weighted_list") return Feature::kWeightedList;
  return std::nullopt;
}

class Rules {
 public:
  Rules(const pb::FeatureProto& feature, std::string key, std::vector<ModelProblem>* problems)
      : feature_(feature), key_(std::move(key)), problems_(problems) {}

  void Check() {
    if (feature_.column().empty()) Add("column", "must name a column of the data", "", true);
    const std::optional<Feature::Kind> kind = KindOf(feature_.kind());
    if (!kind.has_value()) {
      return Add("kind", absl::StrCat("is `", feature_.kind(), "`"),
                 "write number, id, list or weighted_list");
    }
    const bool number = *kind == Feature::kNumber;
    if (number && feature_.has_rows()) Add("rows", "is for ids", "remove it, or write kind: id");
    if (!number && (feature_.rows() < 1 || feature_.rows() > kMaxRows))
      Add("rows", absl::StrCat("must be from 1 to ", kMaxRows), "ids are below it", true);
    if (feature_.has_size() && !number && *kind != Feature::kId)
      Add("size", "is for numbers and ids", "remove it: a list has any number of values");
    if (feature_.has_size() && (feature_.size() < 1 || feature_.size() > kMaxSize))
      Add("size", absl::StrCat("must be from 1 to ", kMaxSize), "leave it out for one value");
    if (!number && feature_.has_mean()) Add("mean", "is for numbers", "remove it");
    if (!number && feature_.has_stddev()) Add("stddev", "is for numbers", "remove it");
    if (!std::isfinite(feature_.mean())) Add("mean", "must be finite", "");
    if (feature_.has_stddev() && !(feature_.stddev() > 0 && std::isfinite(feature_.stddev())))
      Add("stddev", "must be above 0", "leave it out for 1");
  }

 private:
  void Add(const char* key, std::string message, std::string remedy, bool required = false) {
    problems_->push_back(
        {absl::StrCat(key_, ".", key), std::move(message), std::move(remedy), required});
  }

  const pb::FeatureProto& feature_;
  const std::string key_;
  std::vector<ModelProblem>* const problems_;
};

}  // namespace

void FeatureSet::Check(const Config& config, std::vector<ModelProblem>* problems) {
  if (config.empty()) {
    problems->push_back({"features", "names no columns",
                         "write a list of {column: x} and {column: y, kind: id, rows: 1000}",
                         true});
  }
  std::set<std::string> seen;
  for (int i = 0; i < config.size(); ++i) {
    const std::string key = absl::StrCat("features[", i, "]");
    Rules(config[i], key, problems).Check();
    if (!config[i].column().empty() && !seen.insert(config[i].column()).second) {
      problems->push_back(
          {key + ".column",
           absl::StrCat("is `", config[i].column(), "`, as is an earlier feature's"),
           "remove one of the two"});
    }
  }
}

FeatureSet::FeatureSet(const Config& config) {
  for (const pb::FeatureProto& proto : config) {
    Feature& feature = features_.emplace_back();
    feature.column = proto.column();
    feature.kind = KindOf(proto.kind()).value_or(Feature::kNumber);
    feature.size = proto.size();
    feature.rows = proto.rows();
    feature.mean = proto.mean();
    if (proto.has_stddev()) feature.stddev = proto.stddev();
  }
}

int64_t FeatureSet::numbers() const {
  int64_t numbers = 0;
  for (const Feature& feature : features_)
    numbers += feature.kind == Feature::kNumber ? feature.width() : 0;
  return numbers;
}

int64_t FeatureSet::fields() const {
  int64_t fields = 0;
  for (const Feature& feature : features_)
    fields += feature.kind == Feature::kNumber ? 0 : feature.width();
  return fields;
}

absl::StatusOr<std::vector<EmbeddingTable>> FeatureSet::CreateTables(
    VariableFactory& factory, const std::string& name, int64_t dim,
    const Initializer& initializer) const {
  std::vector<EmbeddingTable> tables;
  for (const Feature& feature : features_) {
    if (feature.kind == Feature::kNumber) continue;
    for (int64_t i = 0; i < feature.width(); ++i) {
      const std::string part = feature.size == 0 ? "" : absl::StrCat("_", i);
      MU_ASSIGN_OR_RETURN(
          EmbeddingTable table,
          factory.CreateEmbeddingTable({.name = absl::StrCat(name, "/", feature.column, part),
                                        .rows = feature.rows,
                                        .dim = dim,
                                        .initializer = initializer}));
      tables.push_back(std::move(table));
    }
  }
  return tables;
}

Sym FeatureSet::Numbers(const BatchRef& batch) const {
  std::vector<Sym> parts;
  for (const Feature& feature : features_) {
    if (feature.kind != Feature::kNumber) continue;
    Sym value = batch[feature.column];
    if (feature.size == 0) value = Reshape(value, {-1, 1});
    if (feature.mean != 0.0f) value = value - feature.mean;
    if (feature.stddev != 1.0f) value = value * (1.0f / feature.stddev);
    parts.push_back(value);
  }
  return parts.size() == 1 ? parts[0] : Concat(parts, 1);
}

std::vector<Sym> FeatureSet::Lookup(const std::vector<EmbeddingTable>& tables,
                                    const BatchRef& batch) const {
  std::vector<Sym> vectors;
  size_t next = 0;
  for (const Feature& feature : features_) {
    switch (feature.kind) {
      case Feature::kNumber:
        break;
      case Feature::kId:
        for (int64_t i = 0; i < feature.width(); ++i) {
          const Sym column = batch[feature.column];
          vectors.push_back(EmbeddingLookup(
              tables[next++],
              feature.size == 0 ? column : Reshape(Slice(column, {0, i}, {-1, 1}), {-1})));
        }
        break;
      case Feature::kList:
        vectors.push_back(EmbeddingBag(tables[next++], batch[feature.column + ".values"],
                                       batch[feature.column + ".splits"]));
        break;
      case Feature::kWeightedList:
        vectors.push_back(EmbeddingBag(tables[next++], batch[feature.column + ".values"],
                                       batch[feature.column + ".splits"],
                                       batch[feature.column + ".weights"], Combiner::kSum));
        break;
    }
  }
  return vectors;
}

std::vector<pb::ColumnSchema> FeatureSet::Columns() const {
  std::vector<pb::ColumnSchema> columns;
  for (const Feature& feature : features_) {
    Shape shape({kUnknownDim});
    if (feature.size > 0) shape.Append(feature.size);
    switch (feature.kind) {
      case Feature::kNumber:
        columns.push_back(MakeColumn(feature.column, kFloat32, shape));
        break;
      case Feature::kId:
        columns.push_back(MakeColumn(feature.column, kInt64, shape));
        break;
      case Feature::kList:
      case Feature::kWeightedList:
        columns.push_back(MakeColumn(feature.column + ".values", kInt64, shape));
        columns.push_back(MakeColumn(feature.column + ".splits", kInt32, shape));
        if (feature.kind == Feature::kWeightedList)
          columns.push_back(MakeColumn(feature.column + ".weights", kFloat32, shape));
        break;
    }
  }
  return columns;
}

std::map<std::string, int64_t> FeatureSet::IdBounds() const {
  std::map<std::string, int64_t> bounds;
  for (const Feature& feature : features_) {
    if (feature.kind != Feature::kNumber) bounds[feature.column] = feature.rows;
  }
  return bounds;
}

}  // namespace mu
