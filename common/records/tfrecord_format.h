// TensorFlow's record files of tf.Example messages (proto/dataset.proto, TfrecordProto).
#pragma once

#include <memory>
#include <string>

#include "common/records/field_columns.h"
#include "common/records/record_format.h"

namespace mu {

// A record is the whole frame: length, its checksum, message, the message's checksum. A damaged
// length ends the file's reading, since no record can be found behind it; a damaged message is a
// bad record.
class TfrecordFormat final : public RecordFormat {
 public:
  explicit TfrecordFormat(std::shared_ptr<const FieldColumns> columns)
      : columns_(std::move(columns)) {}

  FindResult FindHead(int part, const char* begin, const char* end, bool last,
                      FoundRecord* head) const override;
  absl::StatusOr<FileFormat> Open(int part, absl::string_view head) const override;
  std::string Place(absl::string_view path, uint64_t line, uint64_t offset) const override {
    return PlaceOfBinary(path, line, offset);
  }

 private:
  const std::shared_ptr<const FieldColumns> columns_;
};

inline constexpr size_t kTfrecordHead = 12;   // length, checksum
inline constexpr size_t kTfrecordFrame = 16;  // beside the message
// A message of more is refused: lengths are checked before memory is taken for them.
inline constexpr uint64_t kMaxTfrecord = uint64_t{64} << 20;

// The frame of a message; for tests and benchmarks.
std::string TfrecordFrame(absl::string_view message);

}  // namespace mu
