#include "coordinator/cluster/layout_store.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/hash.h"
#include "common/env/file.h"
#include "common/obs/log.h"

namespace mu {
namespace {

// Everything that may change how a file is read, and more: a needless look is better than a wrong
// place.
uint64_t HashOfReading(pb::DatasetProto dataset) {
  dataset.clear_id();
  dataset.clear_name();
  dataset.clear_files();
  return HashString(dataset.SerializeAsString());
}

pb::FileStampProto StampOf(const FileInfo& info) {
  pb::FileStampProto stamp;
  stamp.set_inode(info.inode);
  stamp.set_size(info.size);
  stamp.set_modified_ns(info.modified_ns);
  return stamp;
}

// The first line of a stored layout; the layout follows. The number is raised whenever records are
// told apart or counted in another way, or a layout says more of them.
std::string HeaderOf(const std::string& file, const pb::FileStampProto& stamp,
                     const std::string& layout) {
  return absl::StrCat("muster layout 3: ", file, " inode ", stamp.inode(), " size ", stamp.size(),
                      " modified_ns ", stamp.modified_ns(), " crc32c ",
                      Crc32c(layout.data(), layout.size()), "\n");
}

}  // namespace

std::string LayoutStore::PathOf(uint64_t reading, const std::string& file) const {
  const uint64_t key = HashCombine(reading, HashString(file));
  return absl::StrCat(folder_, "/", absl::Hex(key, absl::kZeroPad16));
}

std::optional<pb::FileLayoutProto> LayoutStore::Find(uint64_t reading,
                                                     const std::string& file) const {
  const auto info = GetFileInfo(file);
  const auto stored = ReadFile(PathOf(reading, file));
  if (!info.ok() || !stored.ok()) return std::nullopt;
  const size_t end = stored->find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::string layout = stored->substr(end + 1);
  pb::FileLayoutProto found;
  if (stored->compare(0, end + 1, HeaderOf(file, StampOf(*info), layout)) != 0 ||
      !found.ParseFromString(layout)) {
    return std::nullopt;
  }
  return found;
}

absl::Status LayoutStore::Keep(uint64_t reading, const std::string& file,
                               const pb::ScanFileReply& reply) const {
  // Another file than the worker's: what changes there would not be noticed here.
  const auto info = GetFileInfo(file);
  if (!info.ok() || !reply.has_stamp() ||
      StampOf(*info).SerializeAsString() != reply.stamp().SerializeAsString()) {
    return absl::OkStatus();
  }
  MU_RETURN_IF_ERROR(MakeDirectories(folder_));
  const std::string layout = reply.layout().SerializeAsString();
  const std::string path = PathOf(reading, file), part = absl::StrCat(path, ".", ::getpid());
  MU_RETURN_IF_ERROR(RemoveTree(part));
  // Not synced: what a crash of the machine damages is looked for again.
  absl::Status kept = AppendToFile(part, HeaderOf(file, reply.stamp(), layout) + layout);
  if (kept.ok()) kept = RenameFile(part, path);
  if (!kept.ok()) RemoveTree(part).IgnoreError();  // a full disk has no use for half of it
  return kept;
}

absl::StatusOr<std::vector<pb::FileLayoutProto>> LayoutStore::Complete(
    const pb::DatasetProto& dataset, const Scan& scan) const {
  std::vector<pb::FileLayoutProto> layouts(dataset.files_size());
  std::vector<size_t> unknown;
  // Once: it goes through the whole data set, which may have many files.
  const uint64_t reading = folder_.empty() ? 0 : HashOfReading(dataset);
  for (int i = 0; i < dataset.files_size(); ++i) {
    auto known = folder_.empty() ? std::nullopt : Find(reading, dataset.files(i));
    if (known.has_value()) {
      layouts[i] = *std::move(known);
    } else {
      unknown.push_back(static_cast<size_t>(i));
    }
  }
  if (unknown.size() < layouts.size()) {
    MU_LOG(INFO, "dataset '{}': the layout of {} of {} files is known from an earlier start ({})",
           dataset.name(), layouts.size() - unknown.size(), layouts.size(), folder_);
  }
  if (unknown.empty()) return layouts;
  absl::Status kept;
  MU_RETURN_IF_ERROR(scan(unknown, [&](size_t file, pb::ScanFileReply reply) {
    if (!folder_.empty() && kept.ok())
      kept = Keep(reading, dataset.files(static_cast<int>(file)), reply);
    layouts[file] = std::move(*reply.mutable_layout());
  }));
  if (!kept.ok()) {
    MU_LOG(WARN, "layouts of data files are not kept for another start: {}", kept.message());
  }
  return layouts;
}

}  // namespace mu
