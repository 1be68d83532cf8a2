// Compressed data files: gzip, zstd and plain, whatever their names say.
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/env/compression.h"
#include "tests/fuzz/scratch_directory.h"

namespace {

constexpr size_t kMostUnpacked = 4 << 20;  // a few bytes may stand for very many

void Unpack(const std::string& path, size_t piece) {
  const auto opened = mu::OpenUnpacked(path);
  if (!opened.ok()) return;
  std::vector<char> buffer(piece);
  for (size_t total = 0; total < kMostUnpacked;) {
    const auto read = (*opened)->Read(buffer.data(), buffer.size());
    if (!read.ok() || *read == 0) return;
    MU_CHECK(*read <= buffer.size());
    total += *read;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mu::fuzzing::ScratchDirectory files;
  if (size < 2) return 0;
  constexpr const char* kNames[] = {"data", "data.gz", "data.zst"};
  const size_t piece = 1 + size_t{data[1]} * 257;
  const std::string path =
      files.Write(kNames[data[0] % 3], {reinterpret_cast<const char*>(data + 2), size - 2});
  Unpack(path, piece);
  files.Clear();
  return 0;
}
