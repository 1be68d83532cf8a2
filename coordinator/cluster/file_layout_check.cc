#include "coordinator/cluster/file_layout_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {

absl::Status CheckFileLayout(const pb::DatasetProto& dataset, const pb::FileLayoutProto& layout) {
  const uint64_t block = std::max<uint32_t>(1, dataset.block_records());
  const uint64_t blocks = layout.records() / block + (layout.records() % block == 0 ? 0 : 1);
  if (static_cast<uint64_t>(layout.offsets_size()) != blocks ||
      layout.lines_size() != layout.offsets_size()) {
    return absl::InternalError(absl::StrCat("a worker reports ", layout.records(),
                                            " records of a file and the places of ",
                                            layout.offsets_size(), " blocks, not of ", blocks));
  }
  if (!layout.beginnings().empty() && layout.beginnings_size() != layout.offsets_size()) {
    return absl::InternalError(absl::StrCat("a worker reports the beginnings of ",
                                            layout.beginnings_size(), " blocks of a file, not of ",
                                            layout.offsets_size()));
  }
  uint64_t end = layout.bytes();
  for (int i = layout.offsets_size() - 1; i >= 0; --i) {
    if (layout.offsets(i) >= end) {
      return absl::InternalError(absl::StrCat("a worker reports block ", i, " of a file at byte ",
                                              layout.offsets(i), ", but it must end before byte ",
                                              end));
    }
    end = layout.offsets(i);
  }
  return absl::OkStatus();
}

}  // namespace mu
