// What the values of a dataset's columns are like: `coordinator stats`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/records/column_set.h"
#include "common/records/distinct_counter.h"
#include "common/records/field_observer.h"
#include "proto/dataset.pb.h"

namespace mu {

// Of one column. Numbers are what the texts that are numbers say.
struct ColumnSummary {
  std::string name;
  uint64_t count = 0;                             // values; of a list each
  uint64_t missing = 0;                           // fields
  uint64_t numbers = 0;                           // of the values
  double mean = 0, stddev = 0, min = 0, max = 0;  // of the numbers; 0 without any
  uint64_t distinct = 0;
  bool distinct_exact = true;
};

// Moments by Welford's method (1962): no difference of large sums. Pure; not thread safe.
class ColumnStats {
 public:
  explicit ColumnStats(std::string name) { summary_.name = std::move(name); }
  void AddText(absl::string_view text);
  void AddNumber(double number);
  void AddMissing() { ++summary_.missing; }
  ColumnSummary Summary() const;

 private:
  void AddToMoments(double number);

  ColumnSummary summary_;
  DistinctCounter distinct_;
  double squares_ = 0;  // the sum of (x - mean)^2
};

// Of all columns of a dataset: of csv, jsonl and tfrecord the fields as they stand in the files (of
// a sequence all values, before it is cut), of other formats what the columns hold; of criteo_tsv
// without what stands there for an empty field. A bad record counts in none. Not thread safe.
class DatasetStats final : public FieldObserver {
 public:
  explicit DatasetStats(const muster::DatasetProto& dataset);

  void OnText(int column, absl::string_view text) override;
  void OnNumber(int column, double number) override;
  void OnMissing(int column) override;

  // After each record.
  void KeepRecord();
  void DropRecord() { pending_.clear(); }
  // Whether the parser tells the values, if this is its columns' observer.
  bool observes() const { return observes_; }
  // Else: the columns of these rows.
  void AddBatch(const Batch& batch);

  std::vector<ColumnSummary> Summaries() const;

 private:
  struct Value {
    enum Kind { kText, kNumber, kMissing } kind;
    int column;
    double number;
    std::string text;
  };

  bool observes_;
  std::vector<ColumnStats> columns_;
  std::vector<Value> pending_;  // of the record that is being read
};

}  // namespace mu
