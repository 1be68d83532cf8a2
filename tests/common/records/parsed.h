// Records of text or bytes, parsed by a dataset's format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/graph/dataset_schema.h"
#include "tests/common/records/open_parser.h"

namespace mu::testing {

class Parsed {
 public:
  explicit Parsed(const muster::DatasetProto& dataset, absl::string_view head = "")
      : parser_(ParserOf(dataset, head)), columns_(SchemaOf(dataset), /*capacity=*/1000) {}

  // "" for a record that was taken, else what is wrong with it.
  std::string Add(absl::string_view record) {
    const std::string padded = std::string(record) + std::string(kRecordPadding, '\0');
    std::string error;
    if (!parser_->Parse(absl::string_view(padded).substr(0, record.size()), &columns_, &error)) {
      columns_.DropRow();
      return error.empty() ? "no reason" : error;
    }
    columns_.CommitRow();
    return "";
  }

  Batch All() const {
    std::vector<uint32_t> rows(columns_.rows());
    for (uint32_t i = 0; i < columns_.rows(); ++i) rows[i] = i;
    return columns_.Gather(rows);
  }
  template <typename T>
  std::vector<T> Values(absl::string_view column) const {
    const Batch batch = All();
    const Tensor* const tensor = batch.Find(column);
    EXPECT_NE(tensor, nullptr) << column;
    if (tensor == nullptr) return {};
    const auto flat = tensor->flat<T>();
    return std::vector<T>(flat.begin(), flat.end());
  }
  Shape ShapeOf(absl::string_view column) const {
    const Batch batch = All();
    return batch.Find(column) == nullptr ? Shape() : batch.Find(column)->shape();
  }

 private:
  const std::unique_ptr<const RecordParser> parser_;
  ColumnSet columns_;
};

}  // namespace mu::testing
