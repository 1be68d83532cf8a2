#include "coordinator/cluster/layout_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/obs/log.h"

namespace mu {
namespace {

// Everything that may change how a file is read, and more: a needless look is better than a wrong
// place.
std::string ReadingOf(pb::DatasetProto dataset) {
  dataset.clear_id();
  dataset.clear_name();
  dataset.clear_files();
  return dataset.SerializeAsString();
}

// The first line of a stored layout; the layout follows.
std::string HeaderOf(const std::string& file, const FileInfo& info, const std::string& layout) {
  return absl::StrCat("muster layout 1: ", file, " inode ", info.inode, " size ", info.size,
                      " modified_ns ", info.modified_ns, " crc32c ",
                      Crc32c(layout.data(), layout.size()), "\n");
}

bool Same(const FileInfo& a, const FileInfo& b) {
  return a.inode == b.inode && a.size == b.size && a.modified_ns == b.modified_ns;
}

}  // namespace

std::string LayoutStore::PathOf(const pb::DatasetProto& dataset, const std::string& file) const {
  const uint64_t key = HashCombine(HashString(ReadingOf(dataset)), HashString(file));
  return absl::StrCat(folder_, "/", absl::Hex(key, absl::kZeroPad16));
}

std::optional<pb::FileLayoutProto> LayoutStore::Find(const pb::DatasetProto& dataset,
                                                     const std::string& file,
                                                     const FileInfo& info) const {
  const auto stored = ReadFile(PathOf(dataset, file));
  if (!stored.ok()) return std::nullopt;
  const size_t end = stored->find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::string layout = stored->substr(end + 1);
  pb::FileLayoutProto found;
  if (stored->compare(0, end + 1, HeaderOf(file, info, layout)) != 0 ||
      !found.ParseFromString(layout)) {
    return std::nullopt;
  }
  return found;
}

absl::StatusOr<std::vector<pb::FileLayoutProto>> LayoutStore::Complete(
    const pb::DatasetProto& dataset, const Scan& scan) const {
  std::vector<pb::FileLayoutProto> layouts(dataset.files_size());
  std::vector<absl::StatusOr<FileInfo>> before;
  std::vector<size_t> unknown;
  for (int i = 0; i < dataset.files_size(); ++i) {
    before.push_back(GetFileInfo(dataset.files(i)));
    std::optional<pb::FileLayoutProto> known;
    if (!folder_.empty() && before[i].ok()) known = Find(dataset, dataset.files(i), *before[i]);
    if (known.has_value()) {
      layouts[i] = *std::move(known);
    } else {
      unknown.push_back(static_cast<size_t>(i));
    }
  }
  if (unknown.size() < layouts.size()) {
    MU_LOG(INFO, "dataset '{}': the layout of {} of {} files is known from an earlier start",
           dataset.name(), layouts.size() - unknown.size(), layouts.size());
  }
  if (unknown.empty()) return layouts;
  MU_ASSIGN_OR_RETURN(std::vector<pb::FileLayoutProto> found, scan(unknown));
  absl::Status kept = folder_.empty() ? absl::OkStatus() : MakeDirectories(folder_);
  for (size_t i = 0; i < unknown.size(); ++i) {
    const std::string& file = dataset.files(static_cast<int>(unknown[i]));
    layouts[unknown[i]] = std::move(found[i]);
    // A file that changes while it is looked through will be looked through again.
    const auto after = GetFileInfo(file);
    const absl::StatusOr<FileInfo>& info = before[unknown[i]];
    if (folder_.empty() || !kept.ok() || !info.ok() || !after.ok() || !Same(*info, *after))
      continue;
    const std::string layout = layouts[unknown[i]].SerializeAsString();
    kept = WriteFileAtomic(PathOf(dataset, file), HeaderOf(file, *info, layout) + layout);
  }
  if (!kept.ok()) {
    MU_LOG(WARN, "layouts of data files are not kept for another start: {}", kept.message());
  }
  return layouts;
}

}  // namespace mu
