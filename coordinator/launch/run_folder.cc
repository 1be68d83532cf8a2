#include "coordinator/launch/run_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {

absl::StatusOr<std::string> MakeRunFolder(const std::string& parent, const std::string& name,
                                          absl::Time now) {
  MU_ASSIGN_OR_RETURN(
      const std::string first,
      AbsolutePath(absl::StrCat(parent, "/", name, "-",
                                absl::FormatTime("%Y%m%d-%H%M%S", now, absl::LocalTimeZone()), "-",
                                ::getpid())));
  MU_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(first)));
  for (int number = 1;; ++number) {
    const std::string folder = number == 1 ? first : absl::StrCat(first, "-", number);
    if (::mkdir(folder.c_str(), 0755) == 0) return folder;
    if (errno != EEXIST) return ErrnoToStatus(errno, "make directory", folder);
  }
}

}  // namespace mu
