#include "common/records/array_head.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace mu {
namespace {

// A record of more is none that a batch could hold.
constexpr uint64_t kMaxRowBytes = uint64_t{64} << 20;
constexpr size_t kIdxMagic = 4;
constexpr absl::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kNpyVersion = 2;
constexpr size_t kMaxNpyHead = size_t{1} << 20;

FindResult Broken(std::string problem, FoundRecord* head) {
  head->problem = std::move(problem);
  return FindResult::kBroken;
}

// The head has `size` bytes, if they are there.
FindResult Whole(const char* begin, const char* end, bool last, size_t size, FoundRecord* head) {
  if (static_cast<size_t>(end - begin) < size) {
    return last ? Broken("the file ends within its head; is it complete?", head)
                : FindResult::kMore;
  }
  head->text = absl::string_view(begin, size);
  head->next = begin + size;
  return FindResult::kFound;
}

void Begin(const char* begin, FoundRecord* head) {
  head->text = {};
  head->next = begin;
  head->line = head->next_line = 1;
}

uint8_t ByteAt(absl::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

uint32_t BigEndian32(absl::string_view text, size_t at) {
  return uint32_t{ByteAt(text, at)} << 24 | uint32_t{ByteAt(text, at + 1)} << 16 |
         uint32_t{ByteAt(text, at + 2)} << 8 | uint32_t{ByteAt(text, at + 3)};
}

// Refuses sizes that overflow and records without bytes.
absl::Status CheckDims(const ArrayHead& head) {
  if (head.dims.empty()) {
    return absl::InvalidArgumentError(
        "the array has no axes; its first axis should count the records");
  }
  uint64_t row = static_cast<uint64_t>(head.size);
  for (size_t i = 1; i < head.dims.size(); ++i) {
    if (head.dims[i] == 0 || head.dims[i] > kMaxRowBytes / row) {
      return absl::InvalidArgumentError(
          absl::StrCat("a record of ", head.Describe(),
                       head.dims[i] == 0 ? " has no elements" : " has more than 64 MiB"));
    }
    row *= head.dims[i];
  }
  if (head.dims[0] > (uint64_t{1} << 62) / row)
    return absl::InvalidArgumentError(absl::StrCat("no file is as large as ", head.Describe()));
  return absl::OkStatus();
}

// The value of 'key' in the text of a Python dictionary, up to where its own brackets, quotes or
// the comma end it; empty if it is not there.
absl::string_view DictionaryValue(absl::string_view text, absl::string_view key) {
  size_t at = text.find(absl::StrCat("'", key, "'"));
  if (at == absl::string_view::npos) at = text.find(absl::StrCat("\"", key, "\""));
  if (at == absl::string_view::npos) return {};
  text.remove_prefix(at + key.size() + 2);
  text = absl::StripLeadingAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, ":")) return {};
  text = absl::StripLeadingAsciiWhitespace(text);
  const char open = text.empty() ? '\0' : text[0];
  if (open == '(' || open == '\'' || open == '"') {
    const size_t close = text.find(open == '(' ? ')' : open, 1);
    return close == absl::string_view::npos ? absl::string_view() : text.substr(0, close + 1);
  }
  return absl::StripTrailingAsciiWhitespace(text.substr(0, text.find_first_of(",}")));
}

absl::Status SetNpyType(absl::string_view descr, ArrayHead* head) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "the array's elements are ", descr.empty() ? "not told" : descr,
        ", which are no numbers of 1 to 8 bytes; write an array of numbers for each column"));
  };
  if (descr.size() != 5 || descr.front() != descr.back()) return wrong();
  const char order = descr[1];
  head->kind = descr[2];
  head->size = descr[3] - '0';
  head->big_endian = order == '>';
  if (order != '<' && order != '>' && order != '|') return wrong();
  const bool whole = head->size == 1 || head->size == 2 || head->size == 4 || head->size == 8;
  const bool known = ((head->kind == 'i' || head->kind == 'u') && whole) ||
                     (head->kind == 'f' && whole && head->size > 1) ||
                     (head->kind == 'b' && head->size == 1);
  return known ? absl::OkStatus() : wrong();
}

}  // namespace

uint64_t ArrayHead::row_elements() const {
  uint64_t elements = 1;
  for (size_t i = 1; i < dims.size(); ++i) elements *= dims[i];
  return elements;
}

std::string ArrayHead::Describe() const {
  const char* name = kind == 'u' ? "uint" : kind == 'i' ? "int" : kind == 'f' ? "float" : "bool";
  return absl::StrCat(name, 8 * size, " [", absl::StrJoin(dims, ", "), "]");
}

FindResult FindIdxHead(const char* begin, const char* end, bool last, FoundRecord* head) {
  Begin(begin, head);
  const absl::string_view text(begin, static_cast<size_t>(end - begin));
  if (text.size() < kIdxMagic) {
    return last ? Broken("this is no IDX file: it has fewer than 4 bytes", head)
                : FindResult::kMore;
  }
  if (text[0] != 0 || text[1] != 0) {
    return Broken("this is no IDX file: it does not begin with two bytes of 0", head);
  }
  return Whole(begin, end, last, kIdxMagic + 4 * size_t{ByteAt(text, 3)}, head);
}

absl::StatusOr<ArrayHead> ParseIdxHead(absl::string_view head) {
  ArrayHead array;
  array.big_endian = true;
  array.head_bytes = head.size();
  switch (ByteAt(head, 2)) {
    case 0x08:
      break;
    case 0x09:
      array.kind = 'i';
      break;
    case 0x0B:
      array.kind = 'i';
      array.size = 2;
      break;
    case 0x0C:
      array.kind = 'i';
      array.size = 4;
      break;
    case 0x0D:
      array.kind = 'f';
      array.size = 4;
      break;
    case 0x0E:
      array.kind = 'f';
      array.size = 8;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("the IDX file has the unknown element type ", ByteAt(head, 2)));
  }
  for (size_t at = kIdxMagic; at < head.size(); at += 4)
    array.dims.push_back(BigEndian32(head, at));
  MU_RETURN_IF_ERROR(CheckDims(array));
  return array;
}

FindResult FindNpyHead(const char* begin, const char* end, bool last, FoundRecord* head) {
  Begin(begin, head);
  const absl::string_view text(begin, static_cast<size_t>(end - begin));
  const size_t magic = std::min(text.size(), kNpyMagic.size());
  if (text.substr(0, magic) != kNpyMagic.substr(0, magic))
    return Broken("this is no NPY file: it does not begin with \\x93NUMPY", head);
  const size_t fixed = kNpyMagic.size() + kNpyVersion;
  if (text.size() < fixed + 2) return Whole(begin, end, last, fixed + 2, head);
  const uint8_t version = ByteAt(text, kNpyMagic.size());
  if (version < 1 || version > 3) {
    return Broken(absl::StrCat("this NPY file has version ", version, "; 1 to 3 can be read"),
                  head);
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (text.size() < fixed + length_bytes)
    return Whole(begin, end, last, fixed + length_bytes, head);
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= size_t{ByteAt(text, fixed + i)} << (8 * i);
  if (length > kMaxNpyHead) return Broken("the head of this NPY file is larger than 1 MiB", head);
  return Whole(begin, end, last, fixed + length_bytes + length, head);
}

absl::StatusOr<ArrayHead> ParseNpyHead(absl::string_view head) {
  ArrayHead array;
  array.head_bytes = head.size();
  const size_t text_begin = kNpyMagic.size() + kNpyVersion + (ByteAt(head, 6) == 1 ? 2 : 4);
  const absl::string_view text = head.substr(text_begin);
  MU_RETURN_IF_ERROR(SetNpyType(DictionaryValue(text, "descr"), &array));
  absl::string_view shape = DictionaryValue(text, "shape");
  if (!absl::ConsumePrefix(&shape, "(") || !absl::ConsumeSuffix(&shape, ")"))
    return absl::InvalidArgumentError("the head of this NPY file has no shape");
  for (absl::string_view dim : absl::StrSplit(shape, ',')) {
    dim = absl::StripAsciiWhitespace(dim);
    if (dim.empty()) continue;
    if (!absl::SimpleAtoi(dim, &array.dims.emplace_back())) {
      return absl::InvalidArgumentError(
          absl::StrCat("the shape (", shape, ") of this NPY file cannot be read"));
    }
  }
  MU_RETURN_IF_ERROR(CheckDims(array));
  if (DictionaryValue(text, "fortran_order") != "False" && array.dims.size() > 1) {
    return absl::InvalidArgumentError(
        "the array is stored column by column (Fortran order); save numpy.ascontiguousarray of it");
  }
  return array;
}

std::string NpyOf(const Tensor& array) {
  MU_CHECK(array.dtype() == kFloat32 || array.dtype() == kInt64);
  std::vector<int64_t> dims(array.shape().begin(), array.shape().end());
  std::string text =
      absl::StrCat("{'descr': '", array.dtype() == kFloat32 ? "<f4" : "<i8",
                   "', 'fortran_order': False, 'shape': (", absl::StrJoin(dims, ", "), ",), }");
  // The elements begin at a multiple of 64.
  const size_t before = kNpyMagic.size() + kNpyVersion + 2;
  text.append(63 - (before + text.size()) % 64, ' ');
  text.push_back('\n');
  std::string bytes(kNpyMagic);
  bytes.append(
      {'\1', '\0', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)});
  bytes += text;
  bytes.append(static_cast<const char*>(array.raw()), array.bytes());
  return bytes;
}

}  // namespace mu
