#include "common/records/column_stats.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/base/hash.h"
#include "common/graph/dataset_schema.h"
#include "common/records/parse_number.h"

namespace mu {

void ColumnStats::AddToMoments(double number) {
  ++summary_.numbers;
  summary_.min = summary_.numbers == 1 ? number : std::min(summary_.min, number);
  summary_.max = summary_.numbers == 1 ? number : std::max(summary_.max, number);
  const double distance = number - summary_.mean;
  summary_.mean += distance / static_cast<double>(summary_.numbers);
  squares_ += distance * (number - summary_.mean);
}

void ColumnStats::AddText(absl::string_view text) {
  ++summary_.count;
  distinct_.Add(HashBytes(text.data(), text.size()));
  double number = 0;
  if (ParseNumber(text, &number)) AddToMoments(number);
}

void ColumnStats::AddNumber(double number) {
  ++summary_.count;
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  distinct_.Add(Mix64(bits));
  AddToMoments(number);
}

ColumnSummary ColumnStats::Summary() const {
  ColumnSummary summary = summary_;
  summary.stddev =
      summary.numbers > 0 ? std::sqrt(squares_ / static_cast<double>(summary.numbers)) : 0;
  summary.distinct = distinct_.Estimate();
  summary.distinct_exact = distinct_.exact();
  return summary;
}

DatasetStats::DatasetStats(const pb::DatasetProto& dataset)
    : observes_(!FieldColumnsOf(dataset).empty() || dataset.has_criteo_tsv()) {
  if (!FieldColumnsOf(dataset).empty()) {
    for (const pb::CsvColumnProto& column : FieldColumnsOf(dataset))
      columns_.emplace_back(column.name());
  } else {
    for (const pb::ColumnSchema& column : SchemaOf(dataset)) columns_.emplace_back(column.name());
  }
}

void DatasetStats::OnText(int column, absl::string_view text) {
  pending_.push_back({Value::kText, column, 0, std::string(text)});
}

void DatasetStats::OnNumber(int column, double number) {
  pending_.push_back({Value::kNumber, column, number, {}});
}

void DatasetStats::OnMissing(int column) { pending_.push_back({Value::kMissing, column, 0, {}}); }

void DatasetStats::KeepRecord() {
  for (const Value& value : pending_) {
    ColumnStats& column = columns_[static_cast<size_t>(value.column)];
    switch (value.kind) {
      case Value::kText:
        column.AddText(value.text);
        break;
      case Value::kNumber:
        column.AddNumber(value.number);
        break;
      case Value::kMissing:
        column.AddMissing();
        break;
    }
  }
  pending_.clear();
}

void DatasetStats::AddBatch(const Batch& batch) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Tensor& tensor = batch.columns[i];
    if (tensor.dtype() == kFloat32) {
      for (const float value : tensor.flat<float>()) columns_[i].AddNumber(value);
    } else if (tensor.dtype() == kInt64) {
      for (const int64_t value : tensor.flat<int64_t>())
        columns_[i].AddNumber(static_cast<double>(value));
    }
  }
}

std::vector<ColumnSummary> DatasetStats::Summaries() const {
  std::vector<ColumnSummary> summaries;
  for (const ColumnStats& column : columns_) summaries.push_back(column.Summary());
  return summaries;
}

}  // namespace mu
