// Parses records of libsvm and libffm into a ColumnSet.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/graph/dataset_schema.h"
#include "gtest/gtest.h"
#include "tests/common/records/open_parser.h"

namespace mu::testing {

class SparseTextTest : public ::testing::Test {
 protected:
  // After dataset_ has its format.
  void MakeColumns() { columns_ = std::make_unique<ColumnSet>(SchemaOf(dataset_), 10); }

  // "" for a record that was taken, else what is wrong with it.
  std::string Parse(const std::string& record) {
    const auto parser = ParserOf(dataset_);
    if (parser == nullptr) return "no parser";
    std::string padded = record + std::string(kRecordPadding, '\0');
    std::string error;
    if (!parser->Parse(absl::string_view(padded).substr(0, record.size()), columns_.get(),
                       &error)) {
      columns_->DropRow();
      return error.empty() ? "no reason" : error;
    }
    columns_->CommitRow();
    return "";
  }

  // Empty if there is no such column.
  template <typename T>
  std::vector<T> Column(const std::string& name, const std::vector<uint32_t>& rows) {
    const Batch batch = columns_->Gather(rows);
    for (size_t i = 0; i < batch.names.size(); ++i) {
      if (batch.names[i] != name) continue;
      const T* data = batch.columns[i].template data<T>();
      return std::vector<T>(data, data + batch.columns[i].shape().elements());
    }
    return {};
  }

  pb::DatasetProto dataset_;
  std::unique_ptr<ColumnSet> columns_;
};

}  // namespace mu::testing
