// Walks over JSON text (RFC 8259) without building anything from it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace mu {

struct JsonValue {
  enum Type { kAbsent, kNull, kTrue, kFalse, kNumber, kString, kArray, kObject };
  Type type = kAbsent;
  bool escaped = false;    // kString: has escapes
  absl::string_view text;  // as written; a string without its quotes
};

// Over one value. A call that fails leaves what is wrong in problem(), with the place in the text.
class JsonScanner {
 public:
  explicit JsonScanner(absl::string_view text)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  // Any value; nested ones are checked and skipped.
  bool Value(JsonValue* value) { return ValueAt(0, value); }
  // '{' or '['.
  bool Open(char bracket);
  // The next key of the object (false in *more: it has ended). Keys are as written.
  bool NextKey(JsonValue* key, bool* more);
  // Whether the array has another element, which Value() then reads.
  bool NextElement(bool* more);
  // Only spaces are left.
  bool End();

  const std::string& problem() const { return problem_; }

 private:
  bool ValueAt(int depth, JsonValue* value);
  bool Nested(int depth, char bracket);
  bool String(JsonValue* value);
  bool Escape();
  bool Number(JsonValue* value);
  bool Word(absl::string_view word, JsonValue::Type type, JsonValue* value);
  bool Wrong(absl::string_view expected);
  void SkipSpaces() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }
  // Of NextKey and NextElement.
  bool NextItem(char close, bool* more);

  const char* const begin_;
  const char* at_;
  const char* const end_;
  bool first_ = false;  // an object or array was just opened
  std::string problem_;
};

// The text that a written string stands for, in *scratch if it has escapes. False: an escape that
// is none, or half a surrogate pair.
bool UnescapeJson(const JsonValue& value, std::string* scratch, absl::string_view* text);

}  // namespace mu
