#include "coordinator/cluster/kept_checkpoint.h"

#include "absl/strings/str_cat.h"
#include "common/env/file.h"

namespace mu {
namespace {

constexpr char kMark[] = "kept";

}  // namespace

absl::Status MarkKept(const std::string& folder, bool kept) {
  if (!DirectoryExists(folder))
    return absl::NotFoundError(absl::StrCat(folder, " is no checkpoint's folder"));
  if (IsKept(folder) == kept) return absl::OkStatus();
  const std::string mark = JoinPath(folder, kMark);
  return kept ? WriteFileAtomic(mark, "") : RemoveTree(mark);
}

bool IsKept(const std::string& folder) { return FileExists(JoinPath(folder, kMark)); }

}  // namespace mu
