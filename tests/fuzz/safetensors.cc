// A checkpoint's file as bytes: header and tensors.
#include "common/checkpoint/safetensors.h"

#include <vector>

#include "common/base/check.h"
#include "tests/fuzz/scratch_directory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mu::fuzzing::ScratchDirectory files;
  const std::string path =
      files.Write("file.safetensors", {reinterpret_cast<const char*>(data), size});
  const auto reader = mu::SafetensorsReader::Open(path);
  if (!reader.ok()) return 0;
  for (const mu::TensorEntry& entry : reader->entries()) {
    MU_CHECK(entry.end <= size);
    std::vector<char> bytes(entry.end - entry.begin);
    MU_CHECK(reader->Read(entry, 0, bytes.data(), bytes.size()).ok());
    MU_CHECK(!reader->Read(entry, 1, bytes.data(), bytes.size()).ok());
    MU_CHECK(reader->Find(entry.name) != nullptr);
  }
  return 0;
}
