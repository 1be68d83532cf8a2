// Which columns a model reads and how: numbers as they are, ids and lists of ids as rows of tables.
// So one model serves every dataset whose columns can be named.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/frontend/model.h"
#include "proto/job.pb.h"

namespace mu {

struct Feature {
  // kNumber: float32 [batch] or [batch, size]. kId: int64, likewise, each value a field of its own
  // with a table of its own. kList: COLUMN.values and COLUMN.splits; kWeightedList:
  // COLUMN.weights too; the rows of a list are added up.
  enum Kind { kNumber, kId, kList, kWeightedList };
  std::string column;
  Kind kind = kNumber;
  int64_t size = 0;   // 0: the column is [batch]
  int64_t rows = 0;   // of each table: ids are below it
  float mean = 0.0f;  // of a number: it enters as (number - mean) / stddev
  float stddev = 1.0f;

  int64_t width() const { return size == 0 ? 1 : size; }
};

// What is wrong with a model's configuration. `key` is below model.NAME, such as
// "features[0].rows".
struct ModelProblem {
  std::string key;
  std::string message;
  std::string remedy;
  bool required = false;  // if the key was not written at all, then it is missing
};

class FeatureSet {
 public:
  using Config = google::protobuf::RepeatedPtrField<muster::FeatureProto>;

  // Adds what is wrong with the configuration.
  static void Check(const Config& config, std::vector<ModelProblem>* problems);
  explicit FeatureSet(const Config& config);  // one that Check finds nothing wrong with

  int64_t numbers() const;  // per record
  int64_t fields() const;   // per record: lookups, a list counts as one

  // A table for each field, named NAME/COLUMN, or NAME/COLUMN_0, NAME/COLUMN_1, ... of one with a
  // size.
  absl::StatusOr<std::vector<EmbeddingTable>> CreateTables(VariableFactory& factory,
                                                           const std::string& name, int64_t dim,
                                                           const Initializer& initializer) const;
  // float32 [batch, numbers()]; only if there are any.
  Sym Numbers(const BatchRef& batch) const;
  // float32 [batch, dim] for each field, by CreateTables' tables.
  std::vector<Sym> Lookup(const std::vector<EmbeddingTable>& tables, const BatchRef& batch) const;

  // For Model::Columns and Model::IdBounds.
  std::vector<pb::ColumnSchema> Columns() const;
  std::map<std::string, int64_t> IdBounds() const;

 private:
  std::vector<Feature> features_;
};

}  // namespace mu
