// A folder in memory (or below $TMPDIR) for the files of one input at a time; it goes with the
// process.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/env/file.h"

namespace mu::fuzzing {

class ScratchDirectory {
 public:
  ScratchDirectory() : directory_(Make()) {}

  const std::string& path() const { return directory_.path(); }
  std::string Write(const std::string& name, absl::string_view contents) const {
    const std::string path = JoinPath(directory_.path(), name);
    FILE* const file = std::fopen(path.c_str(), "wb");
    MU_CHECK(file != nullptr);
    MU_CHECK(std::fwrite(contents.data(), 1, contents.size(), file) == contents.size());
    MU_CHECK(std::fclose(file) == 0);
    return path;
  }
  void Clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      std::filesystem::remove_all(entry.path());
  }

 private:
  static TempDirectory Make() {
    if (std::getenv("TMPDIR") == nullptr && DirectoryExists("/dev/shm"))
      setenv("TMPDIR", "/dev/shm", 0);
    auto made = TempDirectory::Create("muster_fuzz_");
    MU_CHECK(made.ok());
    return *std::move(made);
  }

  const TempDirectory directory_;
};

}  // namespace mu::fuzzing
