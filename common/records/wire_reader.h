// Reads protobuf's wire format (protobuf.dev/programming-guides/encoding) field by field, without
// a message.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace mu {

class WireReader {
 public:
  enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  explicit WireReader(absl::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  // The next field. False at the end, and where the message is broken: ok() tells.
  bool Next() {
    if (!ok_ || at_ == end_) return false;
    uint64_t tag = 0;
    if (!Varint(&tag) || tag >> 3 == 0 || tag >> 35 != 0) return Fail();
    field_ = static_cast<uint32_t>(tag >> 3);
    type_ = static_cast<int>(tag & 7);
    switch (type_) {
      case kVarint:
        return Varint(&number_) || Fail();
      case kFixed64:
        return Take(8);
      case kFixed32:
        return Take(4);
      case kBytes: {
        uint64_t size = 0;
        return Varint(&size) ? Take(size) : Fail();
      }
      default:  // groups are of no message that is read here
        return Fail();
    }
  }

  bool ok() const { return ok_; }
  uint32_t field() const { return field_; }
  int type() const { return type_; }
  uint64_t number() const { return number_; }         // kVarint
  absl::string_view bytes() const { return bytes_; }  // the other types
  bool Is(uint32_t field, WireType type) const { return field_ == field && type_ == type; }

  // A varint at the beginning of `bytes`, which it is taken off. False: it is broken.
  static bool TakeVarint(absl::string_view* bytes, uint64_t* value) {
    WireReader reader(*bytes);
    if (!reader.Varint(value)) return false;
    bytes->remove_prefix(static_cast<size_t>(reader.at_ - bytes->data()));
    return true;
  }

 private:
  bool Fail() {
    ok_ = false;
    return false;
  }
  bool Take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_)) return Fail();
    bytes_ = absl::string_view(at_, size);
    at_ += size;
    return true;
  }
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 70 && at_ < end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      *value |= uint64_t{byte & 0x7Fu} << (shift < 64 ? shift : 63);
      if (byte < 0x80) return shift < 63 || byte <= 1;
    }
    return false;
  }

  const char* at_;
  const char* const end_;
  bool ok_ = true;
  uint32_t field_ = 0;
  int type_ = 0;
  uint64_t number_ = 0;
  absl::string_view bytes_;
};

}  // namespace mu
