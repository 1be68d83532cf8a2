// Tells lines of text apart, and the fields of a line. Blank lines are no records, nor are lines of
// a comment alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/records/record_finder.h"

namespace mu {

// Some programs begin their text files with it.
inline constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// A line is a record, except that a quoted field may hold line ends.
struct RecordSyntax {
  char delimiter = '\t';
  char quote = 0;           // 0: fields are never quoted
  char comment = 0;         // begins one; with it, spaces alone are a blank line; 0: no comments
  bool trim = false;        // spaces may stand before a quote
  bool header = false;      // the first record names the columns
  uint32_t skip_lines = 0;  // at the beginning of the file, before the header
};

// A quote that is not closed within this many bytes of its record's begin is taken for an ordinary
// character.
inline constexpr size_t kMaxQuotedRecord = size_t{1} << 20;
// Longer lines are refused: what has them is no text.
inline constexpr size_t kMaxLine = size_t{16} << 20;

// What is said of a line that is longer than kMaxLine.
std::string LineTooLong();

// Looks for the first record in [begin, end). `last` says that nothing follows `end`; `line` is
// begin's line number. kBroken: a line is too long.
FindResult FindRecord(const RecordSyntax& syntax, const char* begin, const char* end, bool last,
                      uint64_t line, FoundRecord* found);

// One field of a record, as a quoting syntax sees it.
struct FieldBounds {
  absl::string_view text;  // between the quotes where it has them; trimmed if the syntax says so
  bool quoted = false;
  bool escaped = false;    // doubled quotes in `text` stand for one each
  bool malformed = false;  // text follows the closing quote, or there is none
  const char* next;        // after the delimiter; null if this was the last field
};

// The field of [begin, end) that starts at `begin`.
FieldBounds FindField(const RecordSyntax& syntax, const char* begin, const char* end);

}  // namespace mu
