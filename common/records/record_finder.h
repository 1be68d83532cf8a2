// Tells the records of a file apart, in a stream of bytes, without parsing them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace mu {

struct FoundRecord {
  absl::string_view text;  // of the record; a line is without "\n" or "\r\n"
  const char* next;        // where to go on
  uint64_t line;           // of the record's begin, as counted by the caller's `line`
  uint64_t next_line;      // line at `next`
  std::string problem;     // kBroken: what is wrong at `line`, a sentence
};

enum class FindResult {
  kFound,
  kMore,    // bytes are missing; what lies before found->next need not be seen again
  kEnd,     // no record is left, and nothing follows
  kBroken,  // the file is not of this format, or damaged: no record can be found from here on
};

// Of a format whose files say in their head how many records of which size follow.
struct FixedRecords {
  uint64_t head_bytes;
  uint64_t record_bytes;  // above 0
  uint64_t records;
  uint64_t bytes() const { return head_bytes + record_bytes * records; }
};

// Immutable, therefore thread safe.
class RecordFinder {
 public:
  virtual ~RecordFinder() = default;

  // Looks for the first record in [begin, end), behind the file's head. `last` says that nothing
  // follows `end`; `line` is begin's line number. Text counts lines from 1, other formats records:
  // a head has none, so record i (from 0) has "line" i + 1.
  virtual FindResult Find(const char* begin, const char* end, bool last, uint64_t line,
                          FoundRecord* found) const = 0;

  // Set if any record can be found without looking at those before it.
  virtual std::optional<FixedRecords> fixed() const { return std::nullopt; }
};

// Where a record is, for messages.
inline std::string PlaceOfLine(absl::string_view path, uint64_t line) {
  return absl::StrCat(path, ":", line);
}
inline std::string PlaceOfBinary(absl::string_view path, uint64_t line, uint64_t offset) {
  return absl::StrCat(path, ": record ", line - 1, " at byte ", offset);
}

}  // namespace mu
