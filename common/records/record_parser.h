// One record's text to one row of columns: what the formats differ in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/records/column_set.h"
#include "common/records/record_scanner.h"
#include "proto/dataset.pb.h"

namespace mu {

// Parsers may read this far behind a record's end (they look at several bytes at once).
inline constexpr size_t kRecordPadding = 64;

// Immutable, therefore thread safe.
class RecordParser {
 public:
  virtual ~RecordParser() = default;

  // Writes the row being filled of `columns` (made from the dataset's schema); the caller commits
  // it. `record` is without its line end. False if it is bad, with the reason as "column X: ..." in
  // *error.
  virtual bool Parse(absl::string_view record, ColumnSet* columns, std::string* error) const = 0;
};

// INVALID_ARGUMENT: the dataset's format does not make sense, the message says in which field.
absl::Status CheckFormat(const muster::DatasetProto& dataset);

// How the records of a (checked) dataset are told apart.
RecordSyntax SyntaxOf(const muster::DatasetProto& dataset);

// A sentence for each column that a file with this header (empty if the syntax has none) does not
// have.
std::vector<std::string> HeaderProblems(const muster::DatasetProto& dataset,
                                        absl::string_view header);

// The parser for one file, whose header (empty if the syntax has none) says where the columns are.
// INVALID_ARGUMENT: the first of HeaderProblems().
absl::StatusOr<std::unique_ptr<RecordParser>> MakeRecordParser(const muster::DatasetProto& dataset,
                                                               absl::string_view header);

}  // namespace mu
