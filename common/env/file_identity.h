// What file a path leads to, so that paths can be compared.
#pragma once

#include <sys/types.h>

#include <compare>
#include <optional>
#include <string>
#include <utility>

namespace mu {

// Equal for two paths of one file or folder: by symbolic links, hard links, "." or "..". Paths that
// lead to nothing are compared by name, the links of the folder resolved as far as it exists.
// Thread compatible: as of when it was made.
class FileIdentity {
 public:
  explicit FileIdentity(const std::string& path);
  bool operator==(const FileIdentity&) const = default;
  auto operator<=>(const FileIdentity&) const = default;  // some order, for sets

 private:
  std::optional<std::pair<dev_t, ino_t>> file_;
  std::string path_;  // of what does not exist, absolute; otherwise empty
};

// The absolute path with the links of its folder, but not its own, resolved; as far as the folder
// exists.
std::string PathInRealFolder(const std::string& path);

}  // namespace mu
