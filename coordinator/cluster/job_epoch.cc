#include "coordinator/cluster/job_epoch.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

bool EpochClaimed(const std::string& job_dir, CoordinatorEpoch epoch) {
  return FileExists(absl::StrCat(job_dir, "/epochs/", epoch.value()));
}

absl::StatusOr<JobId> JobIdOf(const std::string& job_dir, JobId fresh) {
  const std::string path = job_dir + "/epochs/job";
  MU_RETURN_IF_ERROR(MakeDirectories(job_dir + "/epochs"));
  const absl::Status created = CreateFileExclusive(path, absl::StrFormat("%016x\n", fresh.value()));
  if (created.ok()) return fresh;
  if (!absl::IsAlreadyExists(created)) return created;
  MU_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  uint64_t id = 0;
  // Whoever made it may have died before it was written.
  if (absl::SimpleHexAtoi(absl::StripAsciiWhitespace(text), &id) && id != 0) return JobId(id);
  MU_RETURN_IF_ERROR(WriteFileAtomic(path, absl::StrFormat("%016x\n", fresh.value())));
  return fresh;
}

}  // namespace mu
