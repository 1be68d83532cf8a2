// The records of a text with their lines, as the scanner finds them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "common/records/record_scanner.h"

namespace mu::testing {

inline constexpr RecordSyntax kLines = {};
inline constexpr RecordSyntax kCsv = {.delimiter = ',', .quote = '"'};
inline constexpr RecordSyntax kTrimmed = {.delimiter = ',', .quote = '"', .trim = true};

struct Found {
  std::string text;
  uint64_t line;
  friend bool operator==(const Found& a, const Found& b) {
    return a.text == b.text && a.line == b.line;
  }
  friend std::ostream& operator<<(std::ostream& out, const Found& f) {
    return out << f.line << ":" << f.text;
  }
};

inline std::vector<Found> Records(const RecordSyntax& syntax, const std::string& text) {
  std::vector<Found> all;
  const char* p = text.data();
  uint64_t line = 1;
  FoundRecord found;
  while (FindRecord(syntax, p, text.data() + text.size(), true, line, &found) ==
         FindResult::kFound) {
    all.push_back({std::string(found.text), found.line});
    p = found.next;
    line = found.next_line;
  }
  EXPECT_EQ(found.next, text.data() + text.size());
  return all;
}

}  // namespace mu::testing
