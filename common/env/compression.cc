#include "common/env/compression.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/crc32c.h"
#include "common/base/status.h"
#include "common/env/compression_streams.h"
#include "common/env/file.h"

namespace mu {
namespace {

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(FileReader file) : file_(std::move(file)) {}
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    return file_.Read(buffer, size);
  }

 private:
  FileReader file_;
};

// Of a file's first bytes: the length of a TFRecord and its checksum.
constexpr size_t kTfrecordHeadBytes = 12;

bool IsTfrecord(absl::string_view head) {
  if (head.size() < kTfrecordHeadBytes) return false;
  uint32_t checksum;
  std::memcpy(&checksum, head.data() + 8, sizeof(checksum));
  return checksum == MaskedCrc32c(head.data(), 8);
}

// The magic, the only method there is, and flags of which three are always 0 (RFC 1952, 2.3). A
// file that ends before is taken for a truncated one. A TFRecord file may begin so by the length of
// its first record, 559,903 bytes for one.
bool IsGzip(absl::string_view head) {
  constexpr char kDeflate = 8;
  constexpr int kReserved = 0xE0;
  if (!absl::StartsWith(head, "\x1F\x8B")) return false;
  if (head.size() > 2 && head[2] != kDeflate) return false;
  if (head.size() > 3 && (head[3] & kReserved) != 0) return false;
  return !IsTfrecord(head);
}

// A frame, or one that is skipped, of which there are sixteen kinds (RFC 8878, 3.1); pzstd writes
// one before each of its frames.
bool IsZstd(absl::string_view head) {
  uint32_t magic;
  if (head.size() < sizeof(magic)) return false;
  std::memcpy(&magic, head.data(), sizeof(magic));
  return magic == 0xFD2FB528u || (magic & 0xFFFFFFF0u) == 0x184D2A50u;
}

}  // namespace

absl::StatusOr<FileReader> FileReader::Open(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoToStatus(errno, "open", path);
  return FileReader(std::move(fd), path);
}

absl::StatusOr<size_t> FileReader::Read(char* buffer, size_t size) {
  while (true) {
    const ssize_t n = read(fd_.get(), buffer, size);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) return ErrnoToStatus(errno, "read", path_);
  }
}

absl::StatusOr<Compression> DetectCompression(const std::string& path) {
  MU_ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  char first[kTfrecordHeadBytes] = {};
  MU_ASSIGN_OR_RETURN(const size_t n, file.Read(first, sizeof(first)));
  const absl::string_view head(first, n);
  if (IsGzip(head)) return Compression::kGzip;
  if (IsZstd(head)) return Compression::kZstd;
  for (absl::string_view ending : {".gz", ".zst"}) {
    if (!absl::EndsWith(path, ending)) continue;
    return absl::DataLossError(
        absl::StrCat(path, n == 0 ? " is empty" : " does not begin as a compressed file does",
                     ", though its name ends in ", ending,
                     "; fetch or write it again, or give it another name if it is not compressed"));
  }
  return Compression::kNone;
}

Compression CompressionOfName(const std::string& path) {
  if (absl::EndsWith(path, ".gz")) return Compression::kGzip;
  return absl::EndsWith(path, ".zst") ? Compression::kZstd : Compression::kNone;
}

absl::StatusOr<std::unique_ptr<ByteStream>> OpenUnpacked(const std::string& path) {
  MU_ASSIGN_OR_RETURN(const Compression compression, DetectCompression(path));
  MU_ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  switch (compression) {
    case Compression::kGzip:
      return MakeGzipStream(std::move(file));
    case Compression::kZstd:
      return MakeZstdStream(std::move(file));
    case Compression::kNone:
      break;
  }
  return std::make_unique<PlainStream>(std::move(file));
}

absl::StatusOr<std::string> Compress(Compression compression, const std::string& data, int level) {
  switch (compression) {
    case Compression::kGzip:
      return GzipCompress(data, level);
    case Compression::kZstd:
      return ZstdCompress(data, level);
    case Compression::kNone:
      break;
  }
  return data;
}

}  // namespace mu
