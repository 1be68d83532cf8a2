// The records of one file, one after the other, from its unpacked bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/env/compression.h"
#include "common/records/record_format.h"

namespace mu {

// Not thread safe.
class RecordStream {
 public:
  // Reads the head. Codes as file.h and compression.h; INVALID_ARGUMENT "PATH:LINE: ...": the file
  // is not of the format.
  static absl::StatusOr<RecordStream> Open(const std::string& path, const RecordFormat& format,
                                           int part);

  const std::string& head() const { return head_; }
  const std::string& head_place() const { return head_place_; }
  // Of the last record.
  std::string place() const { return format_->Place(path_, record_line_, record_offset_); }

  // False at the end of the file. The record is valid until the next call; kRecordPadding bytes
  // stand behind it.
  absl::StatusOr<bool> Next(const RecordFinder& finder, absl::string_view* record);

 private:
  RecordStream(const std::string& path, const RecordFormat* format)
      : path_(path), format_(format) {}
  absl::Status Broken(const FoundRecord& found) const;
  absl::Status ReadMore();

  std::string path_;
  const RecordFormat* format_;
  std::unique_ptr<ByteStream> bytes_;
  std::string head_, head_place_;
  std::string text_;                              // bytes of the file
  uint64_t dropped_ = 0;                          // before text_
  size_t at_ = 0;                                 // in text_: where the next record is looked for
  uint64_t line_ = 1;                             // at at_
  uint64_t record_line_ = 1, record_offset_ = 0;  // of the last record
  bool ended_ = false;
  std::string padded_;
};

}  // namespace mu
