// The safetensors file format (huggingface.co/docs/safetensors): 8 bytes of header length, a JSON
// header, then the tensors' bytes without holes. See docs/checkpoint_format.md for what we put into
// it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/env/unique_fd.h"
#include "common/tensor/dtype.h"

namespace mu {

struct TensorEntry {
  std::string name;
  DType dtype = muster::DTYPE_INVALID;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // of its bytes, counted from the end of the header
  uint64_t end = 0;
};

// Writes one file, streaming: all tensors are announced first, then their bytes follow in that
// order. The file appears under its name at Finish, whole and synced, or never. Not thread safe.
class SafetensorsWriter {
 public:
  // `entries` need no offsets. To have every tensor aligned, put those with larger elements first.
  static absl::StatusOr<SafetensorsWriter> Create(
      const std::string& path, std::vector<TensorEntry> entries,
      const std::map<std::string, std::string>& metadata);
  SafetensorsWriter(SafetensorsWriter&&) = default;
  ~SafetensorsWriter();  // removes what is not finished

  // Bytes of the next tensors; may be cut anywhere. Buffered.
  absl::Status Append(const void* data, size_t size);
  // The same without a copy: room for `size` bytes, at most kMostRoom, of which Wrote tells how
  // many are now there.
  static constexpr size_t kMostRoom = 1 << 20;
  absl::StatusOr<char*> Room(size_t size);
  void Wrote(size_t size) { used_ += size; }
  // Optional, before Finish: waits until the bytes are on the disk. FAILED_PRECONDITION unless
  // exactly the announced bytes were given.
  absl::Status Sync();
  // The same, and gives the file its name.
  absl::Status Finish();

  uint64_t bytes() const { return written_; }
  uint32_t crc32c() const { return crc_; }  // of the whole file

 private:
  SafetensorsWriter(std::string path, std::string temporary, UniqueFd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}
  absl::Status Flush(size_t size);  // writes that much of the buffer

  std::string path_;
  std::string temporary_;
  UniqueFd fd_;
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> buffer_;
  size_t used_ = 0;  // of the buffer
  uint64_t expected_ = 0;
  uint64_t written_ = 0;  // what was flushed
  bool synced_ = false;
  uint64_t asked_ = 0;   // of that, what the system was asked to bring to the disk
  uint64_t waited_ = 0;  // and what is there
  uint32_t crc_ = 0;
};

// Reads a file's header and tensors. What the file says is checked: offsets, sizes, types. Thread
// safe.
class SafetensorsReader {
 public:
  // DATA_LOSS, naming the file, if it is none.
  static absl::StatusOr<SafetensorsReader> Open(const std::string& path);

  const std::vector<TensorEntry>& entries() const { return entries_; }  // by position in the file
  // nullptr if there is none.
  const TensorEntry* Find(const std::string& name) const;
  // Bytes [offset, offset + size) of a tensor.
  absl::Status Read(const TensorEntry& entry, uint64_t offset, void* out, size_t size) const;
  // Bytes of the file; the tensors' begin at data_begin().
  absl::Status ReadRaw(uint64_t offset, void* out, size_t size) const;
  uint64_t data_begin() const { return data_begin_; }
  uint64_t file_bytes() const { return file_bytes_; }
  const std::string& path() const { return path_; }

 private:
  absl::Status ParseHeader(absl::string_view json, uint64_t data_bytes);

  std::string path_;
  UniqueFd fd_;
  uint64_t data_begin_ = 0;
  uint64_t file_bytes_ = 0;
  std::vector<TensorEntry> entries_;
  std::map<std::string, size_t> by_name_;
};

}  // namespace mu
