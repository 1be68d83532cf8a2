// Data files whose records say who they are: the numbers from `first` on, one a line.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <fstream>
#include <string>

#include "tests/testing/matchers.h"

namespace mu::testing {

inline std::string Numbers(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = first; i < first + count; ++i) text += std::to_string(i) + "\n";
  return text;
}

// Packed as the ending of `path` says: .gz, .zst, else plain.
inline void WriteFile(const std::string& path, const std::string& text) {
  if (path.ends_with(".gz")) {
    gzFile file = gzopen(path.c_str(), "wb");
    ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
              static_cast<int>(text.size()));
    ASSERT_EQ(gzclose(file), Z_OK);
    return;
  }
  std::string bytes = text;
  if (path.ends_with(".zst")) {
    bytes.resize(ZSTD_compressBound(text.size()));
    bytes.resize(ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), 3));
  }
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace mu::testing
