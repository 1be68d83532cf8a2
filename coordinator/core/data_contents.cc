#include "coordinator/core/data_contents.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"

namespace mu {
namespace {

// So many files share a hash.
size_t FilesOfOne(size_t files) { return (files + kMostContents - 1) / kMostContents; }

std::string NameOf(const pb::DatasetProto& named, size_t file, size_t files) {
  if (file < static_cast<size_t>(named.files_size())) return named.files(static_cast<int>(file));
  return absl::StrCat("file ", file + 1, " of ", files);
}

}  // namespace

std::vector<uint64_t> ContentsOf(const DataLayout& data) {
  const std::vector<FileLayout>& files = *data.files;
  const size_t together = FilesOfOne(files.size());
  std::vector<uint64_t> contents;
  for (size_t first = 0; first < files.size(); first += together) {
    uint64_t hash = 0;
    for (size_t file = first; file < std::min(first + together, files.size()); ++file)
      hash = HashCombine(hash, files[file].contents);
    contents.push_back(hash);
  }
  return contents;
}

uint64_t FingerprintOfLengthened(uint64_t fingerprint) {
  return HashCombine(fingerprint, 0x6c6f6e676572);
}

absl::Status CheckSameData(const DataLayout& data, const pb::DatasetPositionProto& position,
                           const pb::DatasetProto& named) {
  const uint64_t fingerprint = data.Fingerprint();
  if (position.fingerprint() != fingerprint &&
      position.fingerprint() != FingerprintOfLengthened(fingerprint)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset '", data.dataset.name(),
        "' is not the one that the checkpoint stopped in: its files, the number of their "
        "records, the batch size, the seed or the shuffling differ"));
  }
  if (position.contents().empty()) return absl::OkStatus();
  const std::vector<uint64_t> contents = ContentsOf(data);
  const size_t files = data.files->size(), together = FilesOfOne(files);
  for (size_t i = 0; i < contents.size(); ++i) {
    const int at = static_cast<int>(i);
    if (at < position.contents_size() && position.contents(at) == contents[i]) continue;
    const size_t first = i * together, last = std::min(first + together, files) - 1;
    std::string what = NameOf(named, first, files);
    if (last > first)
      what = absl::StrCat("one of the files from ", what, " to ", NameOf(named, last, files));
    return absl::FailedPreconditionError(absl::StrCat(
        "dataset '", data.dataset.name(), "': ", what,
        " has changed since the job began to read it; continued, the job would use some records "
        "twice and others never. Put the file back as it was, or train on the new data in another "
        "job_dir"));
  }
  return absl::OkStatus();
}

}  // namespace mu
