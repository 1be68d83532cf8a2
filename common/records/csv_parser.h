// Delimited text with named, typed columns (proto/dataset.proto, CsvProto).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "common/records/field_columns.h"
#include "common/records/record_parser.h"
#include "common/records/record_scanner.h"

namespace mu {

// INVALID_ARGUMENT: what in the proto makes no sense.
absl::Status CheckCsv(const muster::CsvProto& csv);
RecordSyntax CsvSyntax(const muster::CsvProto& csv);
// A sentence for each column that a file with this header does not have.
std::vector<std::string> CsvHeaderProblems(const muster::CsvProto& csv, absl::string_view header);

class CsvParser final : public RecordParser {
 public:
  // `header` is the file's, where the syntax has one. INVALID_ARGUMENT: a column is not in it.
  static absl::StatusOr<std::unique_ptr<RecordParser>> Create(
      const muster::CsvProto& csv, std::shared_ptr<const FieldColumns> columns,
      absl::string_view header);

  bool Parse(absl::string_view record, ColumnSet* columns, std::string* error) const override;

 private:
  CsvParser(const muster::CsvProto& csv, std::shared_ptr<const FieldColumns> columns);
  bool Store(int column, absl::string_view text, bool missing, FieldRow* row,
             std::string* error) const;
  bool StoreSeveral(int column, absl::string_view text, FieldRow* row, std::string* error) const;

  const RecordSyntax syntax_;
  const std::shared_ptr<const FieldColumns> columns_;
  size_t header_fields_ = 0;  // 0: no header
  size_t needed_fields_ = 0;
  std::vector<std::vector<int>> by_field_;  // which columns a field fills
  absl::flat_hash_set<std::string> missing_;
};

}  // namespace mu
