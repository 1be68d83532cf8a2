// What a look through a data set's files has found, kept in the job's directory: a coordinator that
// is started again does not go through terabytes before its first step.
//
// One small file per data file. It is believed only while the data file is the same (inode, size,
// time of its last change) and the data set reads it in the same way; one that is damaged is as
// good as none.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "proto/dataset.pb.h"

namespace mu {

class LayoutStore {
 public:
  // In `folder`, which is made when something is kept; empty: nothing is kept.
  explicit LayoutStore(std::string folder) : folder_(std::move(folder)) {}

  // Layouts of these files (indices in dataset.files()), or the first error.
  using Scan = std::function<absl::StatusOr<std::vector<pb::FileLayoutProto>>(
      const std::vector<size_t>& files)>;
  // The layouts of all files of the data set, in their order: those that are known, and `scan`'s of
  // the rest, which are kept from now on. That one cannot be kept is logged, and no error.
  absl::StatusOr<std::vector<pb::FileLayoutProto>> Complete(const pb::DatasetProto& dataset,
                                                            const Scan& scan) const;

 private:
  std::string PathOf(const pb::DatasetProto& dataset, const std::string& file) const;
  std::optional<pb::FileLayoutProto> Find(const pb::DatasetProto& dataset, const std::string& file,
                                          const FileInfo& info) const;

  const std::string folder_;
};

}  // namespace mu
