// One record's bytes to one row of columns: what the formats differ in.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "common/records/column_set.h"

namespace mu {

// Parsers may read this far behind a record's end (they look at several bytes at once).
inline constexpr size_t kRecordPadding = 64;
inline constexpr size_t kShownText = 40;  // of a bad field, in messages

// Immutable, therefore thread safe.
class RecordParser {
 public:
  virtual ~RecordParser() = default;

  // Writes the row being filled of `columns` (made from the dataset's schema); the caller commits
  // it. `record` is what the format's RecordFinder found. False if it is bad, with the reason as
  // "column X: ..." in *error.
  virtual bool Parse(absl::string_view record, ColumnSet* columns, std::string* error) const = 0;
};

// column NAME: "TEXT" PROBLEM. Returns false.
bool WrongField(absl::string_view column, absl::string_view text, absl::string_view problem,
                std::string* error);

}  // namespace mu
