#include "common/records/record_scanner.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

const char* Find(const char* begin, const char* end, char c) {
  return static_cast<const char*>(std::memchr(begin, c, static_cast<size_t>(end - begin)));
}

bool IsSpace(const RecordSyntax& syntax, char c) {
  return c == ' ' || (c == '\t' && syntax.delimiter != '\t');
}

// Of a quoted text that begins at `begin`: its closing quote, or null.
const char* ClosingQuote(char quote, const char* begin, const char* end, bool* escaped) {
  while (true) {
    const char* found = Find(begin, end, quote);
    if (found == nullptr || found + 1 == end || found[1] != quote) return found;
    *escaped = true;
    begin = found + 2;
  }
}

const char* OpeningQuote(const RecordSyntax& syntax, const char* begin, const char* end) {
  if (syntax.quote == 0) return nullptr;
  if (syntax.trim) {
    while (begin < end && IsSpace(syntax, *begin)) ++begin;
  }
  return begin < end && *begin == syntax.quote ? begin : nullptr;
}

// The newline that ends a record which begins at `begin` and has a quote somewhere; `newline` ends
// its first line. Null: a quote is still open at `end`, or it cannot be told yet whether it is
// closed there.
const char* EndOfQuoted(const RecordSyntax& syntax, const char* begin, const char* newline,
                        const char* end, bool last) {
  const char* p = begin;
  while (true) {
    const char* quote = OpeningQuote(syntax, p, newline);
    bool escaped = false;
    if (quote != nullptr) {
      const char* closing = ClosingQuote(syntax.quote, quote + 1, end, &escaped);
      if (closing == nullptr || (closing + 1 == end && !last)) return nullptr;
      p = closing + 1;
      if (p > newline) {
        newline = Find(p, end, '\n');
        if (newline == nullptr) {
          if (!last) return nullptr;
          newline = end;
        }
      }
    }
    const char* delimiter = Find(p, newline, syntax.delimiter);
    if (delimiter == nullptr) return newline;
    p = delimiter + 1;
  }
}

absl::string_view WithoutReturn(const char* begin, const char* end) {
  if (end > begin && end[-1] == '\r') --end;
  return absl::string_view(begin, static_cast<size_t>(end - begin));
}

bool IsBlank(const RecordSyntax& syntax, absl::string_view line) {
  if (line.empty() || syntax.comment == 0) return line.empty();
  const size_t word = line.find_first_not_of(" \t");
  return word == absl::string_view::npos || line[word] == syntax.comment;
}

}  // namespace

std::string LineTooLong() {
  return absl::StrCat("the line has more than ", kMaxLine,
                      " bytes, so this is no text file of records; check the path and the format");
}

FindResult FindRecord(const RecordSyntax& syntax, const char* begin, const char* end, bool last,
                      uint64_t line, FoundRecord* found) {
  while (begin < end) {
    const char* newline = Find(begin, end, '\n');
    if (newline == nullptr && !last) break;
    const char* stop = newline == nullptr ? end : newline;
    uint64_t lines = newline != nullptr;
    if (IsBlank(syntax, WithoutReturn(begin, stop))) {
      line += lines;
      begin = newline == nullptr ? end : newline + 1;
      continue;
    }
    if (syntax.quote != 0 && Find(begin, stop, syntax.quote) != nullptr) {
      const bool whole = static_cast<size_t>(end - begin) >= kMaxQuotedRecord;
      const char* limit = whole ? begin + kMaxQuotedRecord : end;
      // Within the limit the answer does not depend on how much of the file the caller happens to
      // hold.
      const char* quoted_stop =
          limit >= stop ? EndOfQuoted(syntax, begin, stop, limit, last && limit == end) : nullptr;
      if (quoted_stop != nullptr) {
        stop = quoted_stop;
        lines = static_cast<uint64_t>(std::count(begin, stop, '\n')) + (stop < end);
      } else if (!whole && !last) {
        break;
      }
    }
    found->text = WithoutReturn(begin, stop);
    found->next = stop < end ? stop + 1 : end;
    found->line = line;
    found->next_line = line + lines;
    return FindResult::kFound;
  }
  found->next = begin;
  found->line = found->next_line = line;
  if (last) return FindResult::kEnd;
  if (static_cast<size_t>(end - begin) <= kMaxLine) return FindResult::kMore;
  found->problem = LineTooLong();
  return FindResult::kBroken;
}

FieldBounds FindField(const RecordSyntax& syntax, const char* begin, const char* end) {
  FieldBounds field;
  const char* text_begin = begin;
  const char* after = begin;  // the field's delimiter is searched from here
  if (const char* quote = OpeningQuote(syntax, begin, end); quote != nullptr) {
    const char* closing = ClosingQuote(syntax.quote, quote + 1, end, &field.escaped);
    field.quoted = true;
    if (closing == nullptr) {
      field.malformed = true;
      closing = quote + 1;
    }
    text_begin = quote + 1;
    field.text = absl::string_view(text_begin, static_cast<size_t>(closing - text_begin));
    after = field.malformed ? quote + 1 : closing + 1;
  }
  const char* delimiter = Find(after, end, syntax.delimiter);
  const char* stop = delimiter == nullptr ? end : delimiter;
  field.next = delimiter == nullptr ? nullptr : delimiter + 1;
  if (field.quoted) {
    for (const char* p = after; p < stop; ++p) {
      if (!syntax.trim || !IsSpace(syntax, *p)) field.malformed = true;
    }
    return field;
  }
  if (syntax.trim) {
    while (text_begin < stop && IsSpace(syntax, *text_begin)) ++text_begin;
    while (stop > text_begin && IsSpace(syntax, stop[-1])) --stop;
  }
  field.text = absl::string_view(text_begin, static_cast<size_t>(stop - text_begin));
  return field;
}

}  // namespace mu
