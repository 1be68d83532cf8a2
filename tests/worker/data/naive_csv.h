// Reads csv character by character, as slowly and plainly as can be: what the reader is compared
// with.
#pragma once

#include <string>
#include <vector>

namespace mu {

struct NaiveRecord {
  std::vector<std::string> fields;
  int line = 0;
};

// Well-formed csv with comma and double quote.
inline std::vector<NaiveRecord> NaiveCsv(const std::string& text) {
  std::vector<NaiveRecord> records;
  NaiveRecord record{{""}, 1};
  bool quoted = false, blank = true;
  int line = 1;
  const auto finish = [&] {
    if (!blank) records.push_back(record);
    record = {{""}, line};
    blank = true;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        record.fields.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        record.fields.back() += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
      blank = false;
    } else if (c == ',') {
      record.fields.emplace_back();
      blank = false;
    } else if (c == '\n') {
      finish();
    } else if (c != '\r' || i + 1 == text.size() || text[i + 1] != '\n') {
      record.fields.back() += c;
      blank = false;
    }
  }
  finish();
  return records;
}

}  // namespace mu
