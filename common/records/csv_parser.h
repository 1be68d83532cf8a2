// Delimited text with named, typed columns (proto/dataset.proto, CsvProto).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/records/bucket_hash.h"
#include "common/records/record_parser.h"

namespace mu {

// INVALID_ARGUMENT: what in the proto makes no sense.
absl::Status CheckCsv(const muster::CsvProto& csv);
RecordSyntax CsvSyntax(const muster::CsvProto& csv);
// A sentence for each column that a file with this header does not have.
std::vector<std::string> CsvHeaderProblems(const muster::CsvProto& csv, absl::string_view header);

// A missing field (empty, or a mark) is: NUMBER its missing_value; HASH a value of its own; LABEL
// 0; a list empty; an ID without a list has nothing to stand for it and is bad, as is every missing
// field that is required.
class CsvParser final : public RecordParser {
 public:
  // `header` is the file's, where the syntax has one. INVALID_ARGUMENT: a column is not in it.
  static absl::StatusOr<std::unique_ptr<RecordParser>> Create(const muster::CsvProto& csv,
                                                              absl::string_view header);

  bool Parse(absl::string_view record, ColumnSet* columns, std::string* error) const override;

 private:
  struct Column {
    muster::CsvColumnProto proto;
    std::unique_ptr<BucketHash> hash;           // HASH
    absl::flat_hash_set<std::string> positive;  // LABEL
  };

  explicit CsvParser(const muster::CsvProto& csv);
  bool Store(int column, absl::string_view text, bool missing, ColumnSet* columns,
             std::string* error) const;
  bool StoreItem(int column, absl::string_view text, ColumnSet* columns, std::string* error) const;
  bool StoreList(int column, absl::string_view text, ColumnSet* columns, std::string* error) const;

  const RecordSyntax syntax_;
  size_t header_fields_ = 0;  // 0: no header
  size_t needed_fields_ = 0;
  std::vector<Column> columns_;
  std::vector<std::vector<int>> by_field_;  // which columns a field fills
  absl::flat_hash_set<std::string> missing_;
};

}  // namespace mu
