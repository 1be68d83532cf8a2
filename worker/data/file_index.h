// Where the records of a file begin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/env/file.h"
#include "common/records/record_scanner.h"

namespace mu {

// Receives the bytes of a file in order.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  virtual absl::Status Write(absl::string_view chunk) = 0;
};

// Immutable once built, therefore thread safe. Offsets are those of the unpacked bytes, lines count
// from 1.
struct FileIndex {
  struct Mark {
    uint64_t offset;
    uint64_t line;
  };
  // The bytes that hold records [first, first + count), and some before them.
  struct Range {
    uint64_t offset;
    uint64_t size;
    uint64_t line;  // at offset
    uint32_t skip;  // records at the beginning that are not asked for
  };

  std::string path;
  FileInfo source;  // as it was when the index was built
  bool compressed = false;
  uint64_t bytes = 0;    // unpacked
  uint64_t records = 0;  // without the header
  uint32_t spacing = 1;
  std::vector<Mark> marks;  // of records 0, spacing, 2*spacing, ...
  std::string header;       // the text of the header record, if the syntax has one
  uint64_t header_line = 1;

  // The records must exist.
  Range Locate(uint64_t first, uint64_t count) const;
};

// Builds an index from the bytes of a file; `source` and `compressed` are left to the caller. Not
// thread safe.
class FileIndexer final : public ChunkSink {
 public:
  // `path` is for messages only.
  FileIndexer(std::string path, const RecordSyntax& syntax, uint32_t spacing);

  // INVALID_ARGUMENT: a line is too long for a text file.
  absl::Status Write(absl::string_view chunk) override;
  bool header_seen() const { return header_seen_; }
  const std::string& header() const { return index_.header; }
  uint64_t header_line() const { return index_.header_line; }
  // After the last chunk. INVALID_ARGUMENT: a header is missing.
  absl::StatusOr<FileIndex> Finish();

 private:
  absl::Status Scan(bool last);
  void SkipByteOrderMark();

  const RecordSyntax syntax_;
  const uint32_t spacing_;
  FileIndex index_;
  std::string pending_;  // bytes not yet assigned to records
  uint64_t pending_offset_ = 0;
  uint64_t pending_line_ = 1;
  bool header_seen_;
  bool begun_ = false;  // a byte order mark can no longer come
};

}  // namespace mu
