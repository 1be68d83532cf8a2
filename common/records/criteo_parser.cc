#include "common/records/criteo_parser.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/graph/dataset_schema.h"

namespace mu {
namespace {

constexpr int kLabelColumn = 0;  // as SchemaOf lists them
constexpr int kFields = 1 + kCriteoDense + kCriteoCategorical;
constexpr int kMaxDigits = 18;

// log(1 + x), which most integers of click logs are small enough to look up.
class LogTable {
 public:
  LogTable() {
    for (size_t i = 0; i < table_.size(); ++i) table_[i] = Compute(i);
  }
  float operator()(uint64_t x) const { return x < table_.size() ? table_[x] : Compute(x); }

 private:
  static float Compute(uint64_t x) {
    return static_cast<float>(std::log1p(static_cast<double>(x)));
  }
  std::array<float, 4096> table_;
};

float Log1p(uint64_t x) {
  static const LogTable table;
  return table(x);
}

// Eight characters at `p` as a hexadecimal number; false if one is no digit.
inline bool ParseHex8(const char* p, uint64_t* value) {
  uint64_t text;
  std::memcpy(&text, p, 8);
  const __m128i x = _mm_cvtsi64_si128(static_cast<int64_t>(text));
  const __m128i digit = _mm_sub_epi8(x, _mm_set1_epi8('0'));
  const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
  const __m128i letter = _mm_sub_epi8(_mm_or_si128(x, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
  const __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);
  if ((_mm_movemask_epi8(_mm_or_si128(is_digit, is_letter)) & 0xFF) != 0xFF) return false;
  // A digit's low four bits are its value; a letter has bit 6 set and is 9 more than its low bits.
  constexpr uint64_t kOnes = 0x0101010101010101ull;
  const uint64_t nibbles = (text & (kOnes * 0x0F)) + 9 * ((text >> 6) & kOnes);
  *value = _pext_u64(__builtin_bswap64(nibbles), kOnes * 0x0F);
  return true;
}

std::string FieldName(int field) {
  if (field == 0) return "label";
  return field <= kCriteoDense ? absl::StrCat("integer ", field)
                               : absl::StrCat("categorical ", field - kCriteoDense);
}

absl::string_view FieldAt(const char* p, const char* end) {
  const void* tab = std::memchr(p, '\t', static_cast<size_t>(end - p));
  const char* stop = tab == nullptr ? end : static_cast<const char*>(tab);
  return absl::string_view(p, static_cast<size_t>(stop - p));
}

bool WrongField(int field, const char* p, const char* end, absl::string_view problem,
                std::string* error) {
  *error = absl::StrCat("column ", FieldName(field), ": \"", FieldAt(p, end).substr(0, kShownText),
                        "\" ", problem);
  return false;
}

bool TooFew(int field, std::string* error) {
  *error = absl::StrCat("column ", FieldName(field), ": is not there; the line has ", field, " of ",
                        kFields, " tab separated fields");
  return false;
}

}  // namespace

CriteoParser::CriteoParser(int64_t hash_buckets, bool labelled) : dense_column_(labelled ? 1 : 0) {
  for (int field = 0; field < kCriteoCategorical; ++field) {
    hashes_.emplace_back(static_cast<uint64_t>(field), static_cast<uint64_t>(hash_buckets));
    missing_.push_back(hashes_.back().OfMissing());
  }
}

bool CriteoParser::TakeLabel(const char** at, const char* end, ColumnSet* columns,
                             std::string* error) const {
  const char* p = *at;
  if (dense_column_ == 0) {
    if (std::count(p, end, '\t') == kFields - 2) return true;  // it is not there
    p += FieldAt(p, end).size();
    if (p == end) return TooFew(1, error);
    *at = p + 1;
    return true;
  }
  if (end - p < 1 || (*p != '0' && *p != '1') || (p + 1 < end && p[1] != '\t')) {
    return WrongField(0, p, end, "is not 0 or 1", error);
  }
  if (p + 1 == end) return TooFew(1, error);
  *columns->Floats(kLabelColumn) = static_cast<float>(*p - '0');
  *at = p + 2;
  return true;
}

bool CriteoParser::Parse(absl::string_view record, ColumnSet* columns, std::string* error) const {
  const char* p = record.data();
  const char* const end = p + record.size();
  // Every field but the last must be followed by a tab. Bytes behind `end` may be looked at
  // (kRecordPadding), so a position is compared with `end` before what stands there is believed.
  if (!TakeLabel(&p, end, columns, error)) return false;

  uint32_t empty_dense = 0, empty_ids = 0;  // a bit for each field
  float* dense = columns->Floats(dense_column_);
  for (int field = 0; field < kCriteoDense; ++field) {
    const char* const begin = p;
    const bool negative = p < end && *p == '-';
    p += negative;
    const char* const digits = p;
    uint64_t value = 0;
    unsigned digit;
    while (p < end && (digit = static_cast<unsigned char>(*p) - unsigned{'0'}) <= 9) {
      value = value * 10 + digit;
      ++p;
      if (p - digits > kMaxDigits) return WrongField(1 + field, begin, end, "is too large", error);
    }
    if (p < end ? *p != '\t' : false)
      return WrongField(1 + field, begin, end, "is not an integer", error);
    if (negative && p == digits)
      return WrongField(1 + field, begin, end, "is not an integer", error);
    if (p == end) return TooFew(2 + field, error);
    empty_dense |= static_cast<uint32_t>(p == begin) << field;
    dense[field] = negative ? 0.0f : Log1p(value);
    ++p;
  }

  int64_t* ids = columns->Ints(dense_column_ + 1);
  for (int field = 0; field < kCriteoCategorical; ++field) {
    const bool is_last = field == kCriteoCategorical - 1;
    uint64_t value;
    const char* stop;
    if (end - p >= 8 && (end - p == 8 || p[8] == '\t') && ParseHex8(p, &value)) {
      ids[field] = hashes_[field].OfValue(value);
      stop = p + 8;
    } else if (p == end || *p == '\t') {
      ids[field] = missing_[field];
      empty_ids |= uint32_t{1} << field;
      stop = p;
    } else {
      const absl::string_view text = FieldAt(p, end);
      ids[field] = hashes_[field].OfText(text);
      stop = p + text.size();
    }
    if (!is_last && stop == end) return TooFew(2 + kCriteoDense + field, error);
    if (is_last && stop != end) {
      *error = absl::StrCat("column ", FieldName(kCriteoDense + kCriteoCategorical),
                            ": is followed by more fields; is this a Criteo click log?");
      return false;
    }
    p = stop + 1;
  }
  if (columns->observer() != nullptr) Observe(empty_dense, empty_ids, columns);
  return true;
}

void CriteoParser::Observe(uint32_t empty_dense, uint32_t empty_ids, ColumnSet* columns) const {
  FieldObserver& observer = *columns->observer();
  if (dense_column_ > kLabelColumn) observer.OnNumber(kLabelColumn, *columns->Floats(kLabelColumn));
  const auto tell = [&observer](int column, bool empty, double value) {
    empty ? observer.OnMissing(column) : observer.OnNumber(column, value);
  };
  const float* const dense = columns->Floats(dense_column_);
  for (int field = 0; field < kCriteoDense; ++field)
    tell(dense_column_, ((empty_dense >> field) & 1) != 0, dense[field]);
  const int64_t* const ids = columns->Ints(dense_column_ + 1);
  for (int field = 0; field < kCriteoCategorical; ++field)
    tell(dense_column_ + 1, ((empty_ids >> field) & 1) != 0, static_cast<double>(ids[field]));
}

}  // namespace mu
