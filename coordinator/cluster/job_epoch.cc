#include "coordinator/cluster/job_epoch.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {

absl::StatusOr<CoordinatorEpoch> ClaimEpoch(const std::string& job_dir) {
  const std::string folder = job_dir + "/epochs";
  MU_RETURN_IF_ERROR(MakeDirectories(folder));
  MU_ASSIGN_OR_RETURN(const std::vector<std::string> claimed, ListDirectory(folder));
  uint64_t last = 0;
  for (const std::string& name : claimed) {
    uint64_t number = 0;
    if (absl::SimpleAtoi(name, &number)) last = std::max(last, number);
  }
  while (true) {
    const absl::Status claimed_now = CreateFileExclusive(absl::StrCat(folder, "/", ++last), "");
    if (claimed_now.ok()) return CoordinatorEpoch(last);
    if (!absl::IsAlreadyExists(claimed_now)) return claimed_now;
  }
}

}  // namespace mu
