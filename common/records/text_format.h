// Formats whose records are lines of text.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/records/record_format.h"
#include "common/records/record_scanner.h"

namespace mu {

// The head is a byte order mark, the lines to skip and the header line, each if there is one;
// head->text is the header line. Lines count from 1 at the beginning of the file.
class TextFormat final : public RecordFormat {
 public:
  // INVALID_ARGUMENT: the header does not name what is needed.
  using MakeParser =
      std::function<absl::StatusOr<std::unique_ptr<RecordParser>>(absl::string_view header)>;
  using FindProblems = std::function<std::vector<std::string>(absl::string_view header)>;

  TextFormat(const RecordSyntax& syntax, MakeParser make_parser, FindProblems problems = nullptr)
      : syntax_(syntax), make_parser_(std::move(make_parser)), problems_(std::move(problems)) {}

  FindResult FindHead(int part, const char* begin, const char* end, bool last,
                      FoundRecord* head) const override;
  absl::StatusOr<FileFormat> Open(int part, absl::string_view head) const override;
  std::vector<std::string> HeadProblems(int part, absl::string_view head) const override;
  std::string Place(absl::string_view path, uint64_t line, uint64_t /*offset*/) const override {
    return PlaceOfLine(path, line);
  }

 private:
  const RecordSyntax syntax_;
  const MakeParser make_parser_;
  const FindProblems problems_;
};

}  // namespace mu
