#include "common/records/array_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"

namespace mu {
namespace {

constexpr uint64_t kMaxElements = uint64_t{16} << 20;  // of a record, as the readers take it

class ArrayFinder final : public RecordFinder {
 public:
  explicit ArrayFinder(const FixedRecords& fixed) : fixed_(fixed) {}
  FindResult Find(const char* begin, const char* end, bool last, uint64_t line,
                  FoundRecord* found) const override {
    found->next = begin;
    found->line = found->next_line = line;
    const auto left = static_cast<uint64_t>(end - begin);
    if (left < fixed_.record_bytes) {
      if (!last) return FindResult::kMore;
      if (left == 0) return FindResult::kEnd;
      found->problem = absl::StrCat("the file ends within a record of ", fixed_.record_bytes,
                                    " bytes; is it complete?");
      return FindResult::kBroken;
    }
    found->text = absl::string_view(begin, fixed_.record_bytes);
    found->next = begin + fixed_.record_bytes;
    found->next_line = line + 1;
    return FindResult::kFound;
  }
  std::optional<FixedRecords> fixed() const override { return fixed_; }

 private:
  const FixedRecords fixed_;
};

template <typename T>
T Load(const char* p, bool big_endian) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  Bits bits;
  std::memcpy(&bits, p, sizeof(T));
  if constexpr (sizeof(T) == 2) bits = big_endian ? __builtin_bswap16(bits) : bits;
  if constexpr (sizeof(T) == 4) bits = big_endian ? __builtin_bswap32(bits) : bits;
  if constexpr (sizeof(T) == 8) bits = big_endian ? __builtin_bswap64(bits) : bits;
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// IEEE 754 binary16, which this compiler has no type for in C++.
float FromHalf(uint16_t half) {
  const uint32_t exponent = (half >> 10) & 31, fraction = half & 1023;
  float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                              : std::ldexp(static_cast<float>(fraction + 1024),
                                           static_cast<int>(exponent) - 25);
  if (exponent == 31) value = std::numeric_limits<float>::quiet_NaN();  // not finite either way
  return (half >> 15) != 0 ? -value : value;
}

template <typename T, bool kBig>
void ToFloats(const char* in, size_t count, float scale, float* out) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(Load<T>(in + i * sizeof(T), kBig)) * scale;
  }
}

template <bool kBig>
void HalvesToFloats(const char* in, size_t count, float scale, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = FromHalf(Load<uint16_t>(in + 2 * i, kBig)) * scale;
}

template <typename T, bool kBig>
void ToInts(const char* in, size_t count, int64_t* out) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<int64_t>(Load<T>(in + i * sizeof(T), kBig));
  }
}

using FloatsFn = void (*)(const char*, size_t, float, float*);
using IntsFn = void (*)(const char*, size_t, int64_t*);

template <template <typename, bool> class Pick, bool kBig>
auto ByType(char kind, int size) {
  const bool is_signed = kind == 'i';
  switch (size) {
    case 1:
      return is_signed ? Pick<int8_t, kBig>::fn : Pick<uint8_t, kBig>::fn;
    case 2:
      return is_signed ? Pick<int16_t, kBig>::fn : Pick<uint16_t, kBig>::fn;
    case 4:
      return is_signed ? Pick<int32_t, kBig>::fn : Pick<uint32_t, kBig>::fn;
    default:
      return is_signed ? Pick<int64_t, kBig>::fn : Pick<uint64_t, kBig>::fn;
  }
}

template <typename T, bool kBig>
struct Floats {
  static constexpr FloatsFn fn = &ToFloats<T, kBig>;
};
template <typename T, bool kBig>
struct Ints {
  static constexpr IntsFn fn = &ToInts<T, kBig>;
};

FloatsFn FloatsOf(const ArrayHead& head) {
  if (head.kind == 'f') {
    if (head.size == 2) return head.big_endian ? HalvesToFloats<true> : HalvesToFloats<false>;
    if (head.size == 4) return head.big_endian ? ToFloats<float, true> : ToFloats<float, false>;
    return head.big_endian ? ToFloats<double, true> : ToFloats<double, false>;
  }
  return head.big_endian ? ByType<Floats, true>(head.kind, head.size)
                         : ByType<Floats, false>(head.kind, head.size);
}

IntsFn IntsOf(const ArrayHead& head) {
  return head.big_endian ? ByType<Ints, true>(head.kind, head.size)
                         : ByType<Ints, false>(head.kind, head.size);
}

class ArrayParser final : public RecordParser {
 public:
  ArrayParser(const pb::ArrayColumnProto& column, int index, const ArrayHead& head)
      : name_(column.name()),
        index_(index),
        elements_(head.row_elements()),
        scale_(column.has_scale() ? column.scale() : 1.0f),
        bound_(column.bound()),
        floats_(column.dtype() == kFloat32 ? FloatsOf(head) : nullptr),
        ints_(column.dtype() == kInt64 ? IntsOf(head) : nullptr) {}

  bool Parse(absl::string_view record, ColumnSet* columns, std::string* error) const override {
    return floats_ != nullptr ? ParseFloats(record.data(), columns->Floats(index_), error)
                              : ParseInts(record.data(), columns->Ints(index_), error);
  }

 private:
  bool ParseFloats(const char* in, float* out, std::string* error) const {
    floats_(in, elements_, scale_, out);
    float sum = 0;  // 0, or NaN if one of them is not finite
    for (size_t i = 0; i < elements_; ++i) sum += out[i] - out[i];
    if (sum == 0) return true;
    const float* const bad =
        std::find_if(out, out + elements_, [](float x) { return !std::isfinite(x); });
    return Wrong(absl::StrCat("element ", bad - out, " is not a finite number"), error);
  }

  bool ParseInts(const char* in, int64_t* out, std::string* error) const {
    ints_(in, elements_, out);
    for (size_t i = 0; i < elements_; ++i) {
      if (out[i] < 0) {
        return Wrong(absl::StrCat(out[i], " is negative, but ids and labels begin at 0"), error);
      }
      if (bound_ > 0 && out[i] >= bound_) {
        return Wrong(absl::StrCat(out[i], " is not below ", bound_,
                                  ", the bound of its ids (the column's `buckets`, or the rows of "
                                  "the model's table)"),
                     error);
      }
    }
    return true;
  }

  bool Wrong(absl::string_view problem, std::string* error) const {
    *error = absl::StrCat("column ", name_, ": ", problem);
    return false;
  }

  const std::string name_;
  const int index_;
  const size_t elements_;
  const float scale_;
  const int64_t bound_;
  const FloatsFn floats_;
  const IntsFn ints_;
};

absl::Status CheckArrayColumn(const pb::ArrayColumnProto& column, std::set<std::string>* names) {
  const auto wrong = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat("column ", column.name(), ": ", problem));
  };
  if (column.name().empty()) return absl::InvalidArgumentError("a column has no name");
  if (!names->insert(column.name()).second) return wrong("two columns have this name");
  if (column.dtype() != kFloat32 && column.dtype() != kInt64)
    return wrong("its values must be float32 or int64");
  if (column.has_scale() &&
      (column.dtype() != kFloat32 || !std::isfinite(column.scale()) || column.scale() == 0))
    return wrong("scale must be a finite number other than 0, of a column of numbers");
  if (column.bound() < 0) return wrong("its bound is negative");
  uint64_t elements = 1;
  for (const int64_t size : column.shape()) {
    if (size <= 0 || static_cast<uint64_t>(size) > kMaxElements / elements)
      return wrong("its shape must have sizes above 0 and at most 16,777,216 elements");
    elements *= static_cast<uint64_t>(size);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckArrays(const pb::ArraysProto& arrays) {
  if (arrays.columns().empty()) return absl::InvalidArgumentError("arrays: no columns are named");
  if (!pb::ArraysProto::Container_IsValid(arrays.container()))
    return absl::InvalidArgumentError("arrays: the kind of files is unknown");
  std::set<std::string> names;
  for (const pb::ArrayColumnProto& column : arrays.columns())
    MU_RETURN_IF_ERROR(Annotate(CheckArrayColumn(column, &names), "arrays"));
  return absl::OkStatus();
}

FindResult ArrayFormat::FindHead(int /*part*/, const char* begin, const char* end, bool last,
                                 FoundRecord* head) const {
  return arrays_.container() == pb::ArraysProto::IDX ? FindIdxHead(begin, end, last, head)
                                                     : FindNpyHead(begin, end, last, head);
}

absl::StatusOr<FileFormat> ArrayFormat::Open(int part, absl::string_view text) const {
  MU_ASSIGN_OR_RETURN(const ArrayHead head, arrays_.container() == pb::ArraysProto::IDX
                                                ? ParseIdxHead(text)
                                                : ParseNpyHead(text));
  const pb::ArrayColumnProto& column = arrays_.columns(part);
  uint64_t elements = 1;
  for (const int64_t size : column.shape()) elements *= static_cast<uint64_t>(size);
  if (elements != head.row_elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat("column ", column.name(), ": the file holds ", head.Describe(), ", that is ",
                     head.row_elements(), " elements a record, but the column has ", elements,
                     " (shape [", absl::StrJoin(column.shape(), ", "), "]); ",
                     head.dims.size() == 1 && arrays_.columns_size() > 1
                         ? "is this the file of another column, such as the labels?"
                     : column.shape().empty() ? "is this the file of another column?"
                                              : "write `shape` as the file has it"));
  }
  if (column.dtype() == kInt64 && head.kind == 'f') {
    return absl::InvalidArgumentError(absl::StrCat("column ", column.name(), ": the file holds ",
                                                   head.Describe(),
                                                   ", but ids and labels are whole numbers"));
  }
  FileFormat format;
  format.finder = std::make_unique<ArrayFinder>(
      FixedRecords{.head_bytes = head.head_bytes,
                   .record_bytes = head.row_elements() * static_cast<uint64_t>(head.size),
                   .records = head.dims[0]});
  format.parser = std::make_unique<ArrayParser>(column, part, head);
  return format;
}

}  // namespace mu
