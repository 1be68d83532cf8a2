#include "common/records/text_format.h"

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {
namespace {

class LineFinder final : public RecordFinder {
 public:
  explicit LineFinder(const RecordSyntax& syntax) : syntax_(syntax) {}
  FindResult Find(const char* begin, const char* end, bool last, uint64_t line,
                  FoundRecord* found) const override {
    return FindRecord(syntax_, begin, end, last, line, found);
  }

 private:
  const RecordSyntax syntax_;
};

}  // namespace

FindResult TextFormat::FindHead(int /*part*/, const char* begin, const char* end, bool last,
                                FoundRecord* head) const {
  head->text = {};
  head->next = begin;
  head->line = head->next_line = 1;
  const absl::string_view all(begin, static_cast<size_t>(end - begin));
  if (!last && all.size() < kByteOrderMark.size()) return FindResult::kMore;
  const char* p = begin;
  uint64_t line = 1;
  if (absl::StartsWith(all, kByteOrderMark)) p += kByteOrderMark.size();
  for (uint32_t skipped = 0; skipped < syntax_.skip_lines; ++skipped, ++line) {
    const void* newline = std::memchr(p, '\n', static_cast<size_t>(end - p));
    if (newline == nullptr && last) {
      p = end;
      break;
    }
    if (newline == nullptr) {
      if (static_cast<size_t>(end - p) <= kMaxLine) return FindResult::kMore;
      head->line = line;
      head->problem = LineTooLong();
      return FindResult::kBroken;
    }
    p = static_cast<const char*>(newline) + 1;
  }
  if (syntax_.header) {
    const FindResult result = FindRecord(syntax_, p, end, last, line, head);
    if (result == FindResult::kMore) head->next = begin;  // the mark must be seen again
    if (result != FindResult::kEnd) return result;
    head->line = 1;
    head->problem = absl::StrCat(syntax_.skip_lines == 0 ? "the file is empty, but its first line"
                                                         : "the file ends before the line that",
                                 " should name the columns (header: true)");
    return FindResult::kBroken;
  }
  head->next = p;
  head->next_line = line;
  return FindResult::kFound;
}

absl::StatusOr<FileFormat> TextFormat::Open(int /*part*/, absl::string_view head) const {
  FileFormat format;
  format.finder = std::make_unique<LineFinder>(syntax_);
  if (make_parser_) {
    MU_ASSIGN_OR_RETURN(format.parser, make_parser_(head));
  }
  return format;
}

std::vector<std::string> TextFormat::HeadProblems(int part, absl::string_view head) const {
  return problems_ && syntax_.header ? problems_(head) : RecordFormat::HeadProblems(part, head);
}

}  // namespace mu
