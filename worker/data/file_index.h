// Where the records of a file begin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/env/file.h"
#include "common/records/record_format.h"

namespace mu {

// Receives the bytes of a file in order.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  virtual absl::Status Write(absl::string_view chunk) = 0;
};

// The CRC32C of the first bytes from some place of a file on, by which a reader notices that it has
// another file than the one that was looked through. Takes the bytes piece by piece.
class BlockBeginning {
 public:
  static constexpr size_t kBytes = 64;  // as FileLayoutProto.beginnings; fewer at the file's end

  void Add(absl::string_view bytes);
  bool full() const { return size_ == kBytes; }
  uint32_t crc() const { return crc_; }

 private:
  uint32_t crc_ = 0;
  size_t size_ = 0;
};

// Immutable once built, therefore thread safe. Offsets are those of the unpacked bytes, lines count
// as the format's RecordFinder says.
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
  uint64_t bytes = 0;    // unpacked
  uint64_t records = 0;  // without the head
  uint32_t spacing = 1;
  std::vector<Mark> marks;           // of records 0, spacing, 2*spacing, ...
  std::vector<uint32_t> beginnings;  // BlockBeginning::crc() from each mark on

  // The records must exist.
  Range Locate(uint64_t first, uint64_t count) const;
};

// Builds an index from the bytes of a file. Not thread safe.
class FileIndexer final : public ChunkSink {
 public:
  // `path` is for messages only. A spacing of 0 looks at the head only; bytes behind it are
  // ignored.
  FileIndexer(std::string path, std::shared_ptr<const RecordFormat> format, int part,
              uint32_t spacing);

  // INVALID_ARGUMENT "PATH:LINE: ...": a head that the dataset cannot be read with, bytes that are
  // no records.
  absl::Status Write(absl::string_view chunk) override;
  // How the file is read, once its head was there; then it stays the same. Null before.
  const std::shared_ptr<const FileFormat>& opened() const { return opened_; }
  // After the last chunk. INVALID_ARGUMENT: as Write; the file ends too early; its records are not
  // those that the head promises.
  absl::StatusOr<FileIndex> Finish();

 private:
  absl::Status ReadHead(bool last);
  absl::Status Scan(bool last);
  void Drop(const char* next);
  // Of the marks whose first bytes have not all been there.
  void ExtendBeginnings(absl::string_view chunk);
  absl::Status Broken(const FoundRecord& found) const;

  const std::shared_ptr<const RecordFormat> format_;
  const int part_;
  const uint32_t spacing_;
  std::shared_ptr<const FileFormat> opened_;
  FileIndex index_;
  struct Begun {
    size_t mark;
    BlockBeginning beginning;
  };
  std::vector<Begun> begun_;  // few: each is of a mark in the last BlockBeginning::kBytes
  std::string pending_;       // bytes not yet assigned to records
  uint64_t pending_offset_ = 0;
  uint64_t pending_line_ = 1;
};

// A file whose length is not what its head says.
absl::Status WrongSize(absl::string_view path, const FixedRecords& fixed, uint64_t bytes);

}  // namespace mu
