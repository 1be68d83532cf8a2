#include "common/env/compression.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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
  char magic[4] = {};
  MU_ASSIGN_OR_RETURN(const size_t n, file.Read(magic, sizeof magic));
  if (n >= 2 && std::memcmp(magic, "\x1F\x8B", 2) == 0) return Compression::kGzip;
  if (n >= 4 && std::memcmp(magic, "\x28\xB5\x2F\xFD", 4) == 0) return Compression::kZstd;
  for (absl::string_view ending : {".gz", ".zst"}) {
    if (!absl::EndsWith(path, ending)) continue;
    return absl::DataLossError(
        absl::StrCat(path, n == 0 ? " is empty" : " does not begin as a compressed file does",
                     ", though its name ends in ", ending,
                     "; fetch or write it again, or give it another name if it is not compressed"));
  }
  return Compression::kNone;
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
