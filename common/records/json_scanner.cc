#include "common/records/json_scanner.h"

#include <emmintrin.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mu {
namespace {

constexpr int kMaxDepth = 64;
constexpr absl::string_view kEscapes = "\"\\/bfnrt";  // beside u

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The first byte that ends a run of ordinary characters in a string: a quote, a backslash, or one
// below space.
const char* SkipOrdinary(const char* p, const char* end) {
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
  const __m128i highest_control = _mm_set1_epi8(0x1F);
  for (; end - p >= 16; p += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(x, highest_control), x);
    const __m128i stop =
        _mm_or_si128(control, _mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, backslash)));
    if (const int mask = _mm_movemask_epi8(stop); mask != 0) return p + __builtin_ctz(mask);
  }
  while (p < end && *p != '"' && *p != '\\' && static_cast<unsigned char>(*p) > 0x1F) ++p;
  return p;
}

bool FourHexDigits(absl::string_view text, uint32_t* value) {
  *value = 0;
  if (text.size() < 4) return false;
  for (char c : text.substr(0, 4)) {
    const char lower = static_cast<char>(c | 0x20);
    if (!IsDigit(c) && !(lower >= 'a' && lower <= 'f')) return false;
    *value = *value * 16 + static_cast<uint32_t>(IsDigit(c) ? c - '0' : lower - 'a' + 10);
  }
  return true;
}

void AppendUtf8(uint32_t code, std::string* out) {
  const auto add = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

// \uXXXX, of which `rest` begins behind the u; perhaps two of them.
bool Unicode(absl::string_view* rest, std::string* out) {
  uint32_t code = 0;
  if (!FourHexDigits(*rest, &code)) return false;
  rest->remove_prefix(4);
  if (code >= 0xDC00 && code < 0xE000) return false;
  if (code >= 0xD800 && code < 0xDC00) {
    uint32_t low = 0;
    if (rest->substr(0, 2) != "\\u" || !FourHexDigits(rest->substr(2), &low)) return false;
    if (low < 0xDC00 || low >= 0xE000) return false;
    rest->remove_prefix(6);
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  AppendUtf8(code, out);
  return true;
}

}  // namespace

bool JsonScanner::Wrong(absl::string_view expected) {
  problem_ = absl::StrCat("this is no JSON: at character ", at_ - begin_ + 1, " ", expected,
                          " is expected, not ",
                          at_ < end_ ? absl::StrCat("\"", absl::string_view(at_, 1), "\"")
                                     : std::string("the end of the line"));
  return false;
}

bool JsonScanner::Open(char bracket) {
  SkipSpaces();
  if (at_ == end_ || *at_ != bracket) return Wrong(bracket == '{' ? "a {" : "a [");
  ++at_;
  first_ = true;
  return true;
}

bool JsonScanner::NextItem(char close, bool* more) {
  SkipSpaces();
  if (at_ < end_ && *at_ == close) {
    ++at_;
    *more = first_ = false;
    return true;
  }
  if (!first_) {
    if (at_ == end_ || *at_ != ',') return Wrong(close == '}' ? "a comma or }" : "a comma or ]");
    ++at_;
  }
  first_ = false;
  *more = true;
  return true;
}

bool JsonScanner::NextKey(JsonValue* key, bool* more) {
  if (!NextItem('}', more)) return false;
  if (!*more) return true;
  SkipSpaces();
  if (at_ == end_ || *at_ != '"') return Wrong("a key");
  if (!String(key)) return false;
  SkipSpaces();
  if (at_ == end_ || *at_ != ':') return Wrong("a colon");
  ++at_;
  return true;
}

bool JsonScanner::NextElement(bool* more) { return NextItem(']', more); }

bool JsonScanner::End() {
  SkipSpaces();
  return at_ == end_ || Wrong("nothing more");
}

bool JsonScanner::String(JsonValue* value) {
  const char* const begin = ++at_;
  value->type = JsonValue::kString;
  value->escaped = false;
  while (true) {
    at_ = SkipOrdinary(at_, end_);
    if (at_ == end_) return Wrong("a quote that ends the string");
    if (*at_ == '"') break;
    if (*at_ != '\\') return Wrong("an escape instead of a control character");
    value->escaped = true;
    if (!Escape()) return Wrong("an escaped character");
  }
  value->text = absl::string_view(begin, static_cast<size_t>(at_ - begin));
  ++at_;
  return true;
}

// Behind the escape, or where it goes wrong. Whether two of them are one character is for
// UnescapeJson to say.
bool JsonScanner::Escape() {
  ++at_;
  if (at_ == end_ || kEscapes.find(*at_) == absl::string_view::npos) {
    if (at_ == end_ || *at_ != 'u') return false;
    uint32_t code = 0;
    if (!FourHexDigits(absl::string_view(at_ + 1, static_cast<size_t>(end_ - at_ - 1)), &code))
      return false;
    at_ += 4;
  }
  ++at_;
  return true;
}

bool JsonScanner::Number(JsonValue* value) {
  const char* const begin = at_;
  const auto digits = [&] {
    const char* const first = at_;
    while (at_ < end_ && IsDigit(*at_)) ++at_;
    return at_ > first;
  };
  if (*at_ == '-') ++at_;
  if (at_ < end_ && *at_ == '0') {
    ++at_;
  } else if (!digits()) {
    return Wrong("a digit");
  }
  if (at_ < end_ && *at_ == '.') {
    ++at_;
    if (!digits()) return Wrong("a digit");
  }
  if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    if (!digits()) return Wrong("a digit");
  }
  value->type = JsonValue::kNumber;
  value->text = absl::string_view(begin, static_cast<size_t>(at_ - begin));
  return true;
}

bool JsonScanner::Word(absl::string_view word, JsonValue::Type type, JsonValue* value) {
  if (absl::string_view(at_, static_cast<size_t>(end_ - at_)).substr(0, word.size()) != word)
    return Wrong("a value");
  value->type = type;
  value->text = absl::string_view(at_, word.size());
  at_ += word.size();
  return true;
}

bool JsonScanner::Nested(int depth, char bracket) {
  if (depth == kMaxDepth) return Wrong("less nesting");
  if (!Open(bracket)) return false;
  JsonValue inner;
  while (true) {
    bool more = false;
    if (!(bracket == '{' ? NextKey(&inner, &more) : NextElement(&more))) return false;
    if (!more) return true;
    if (!ValueAt(depth + 1, &inner)) return false;
  }
}

bool JsonScanner::ValueAt(int depth, JsonValue* value) {
  SkipSpaces();
  if (at_ == end_) return Wrong("a value");
  const char* const begin = at_;
  switch (*at_) {
    case '"':
      return String(value);
    case '{':
    case '[':
      if (!Nested(depth, *begin)) return false;
      value->type = *begin == '{' ? JsonValue::kObject : JsonValue::kArray;
      value->text = absl::string_view(begin, static_cast<size_t>(at_ - begin));
      return true;
    case 't':
      return Word("true", JsonValue::kTrue, value);
    case 'f':
      return Word("false", JsonValue::kFalse, value);
    case 'n':
      return Word("null", JsonValue::kNull, value);
    default:
      if (*at_ == '-' || IsDigit(*at_)) return Number(value);
      return Wrong("a value");
  }
}

bool UnescapeJson(const JsonValue& value, std::string* scratch, absl::string_view* text) {
  *text = value.text;
  if (!value.escaped) return true;
  scratch->clear();
  absl::string_view rest = value.text;
  while (!rest.empty()) {
    const size_t escape = std::min(rest.find('\\'), rest.size());
    scratch->append(rest.data(), escape);
    rest.remove_prefix(escape);
    if (rest.empty()) break;
    if (rest.size() < 2) return false;
    const char c = rest[1];
    rest.remove_prefix(2);
    constexpr absl::string_view kMeant = "\"\\/\b\f\n\r\t";
    if (c == 'u') {
      if (!Unicode(&rest, scratch)) return false;
    } else if (const size_t which = kEscapes.find(c); which != absl::string_view::npos) {
      scratch->push_back(kMeant[which]);
    } else {
      return false;
    }
  }
  *text = *scratch;
  return true;
}

}  // namespace mu
