#include "worker/data/open_files.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/status.h"

namespace mu {

absl::Status OpenFiles::Open(OpenFile* file) {
  if (file->fds.empty()) {
    MU_RETURN_IF_ERROR(OpenParts(file));
  } else {
    std::erase(recent_, file);
  }
  recent_.push_back(file);
  return absl::OkStatus();
}

absl::Status OpenFiles::OpenParts(OpenFile* file) {
  const std::vector<DataFile>& parts = file->known.parts;
  while (!recent_.empty() && descriptors_ + parts.size() > kMostDescriptors) {
    descriptors_ -= recent_.front()->fds.size();
    recent_.front()->fds.clear();
    recent_.erase(recent_.begin());
  }
  std::vector<UniqueFd> fds;
  uint64_t first_size = 0;
  for (const DataFile& part : parts) {
    MU_ASSIGN_OR_RETURN(UniqueFd fd, part.Open(access_));
    MU_ASSIGN_OR_RETURN(const uint64_t size, SizeOfOpen(fd.get(), part.path));
    const std::optional<FixedRecords> fixed = part.format->finder->fixed();
    if (fixed.has_value() && fixed->bytes() != size) return WrongSize(part.path, *fixed, size);
    if (fds.empty()) first_size = size;
    fds.push_back(std::move(fd));
  }
  if (file->sized && file->size != first_size) return FileChanged(file->known.path());
  file->fds = std::move(fds);
  file->size = first_size;
  file->sized = true;
  descriptors_ += file->fds.size();
  return absl::OkStatus();
}

}  // namespace mu
