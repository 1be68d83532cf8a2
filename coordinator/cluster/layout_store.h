// What a look through a data set's files has found, kept in the job's directory: a coordinator that
// is started again does not go through terabytes before its first step.
//
// One file per data file, 14 to 20 bytes a block. It is believed only while the data file is the
// same (inode, size, time of its last modification) and the data set reads it in the same way; one
// that is damaged is as good as none. Nothing is kept of a file that the coordinator does not see,
// or sees otherwise than the worker that looked through it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "proto/dataset.pb.h"
#include "proto/worker.pb.h"

namespace mu {

class LayoutStore {
 public:
  // In `folder`, which is made when something is kept; empty: nothing is kept.
  explicit LayoutStore(std::string folder) : folder_(std::move(folder)) {}

  // Looks through these files (indices in dataset.files()) and says what it finds of each as soon
  // as it is known, on the caller's thread; the first error ends it.
  using Found = std::function<void(size_t file, pb::ScanFileReply reply)>;
  using Scan = std::function<absl::Status(const std::vector<size_t>& files, const Found& found)>;
  // The layouts of all files of the data set, in their order: those that are known, and `scan`'s of
  // the rest, which are kept from now on. That one cannot be kept is logged, and no error.
  absl::StatusOr<std::vector<pb::FileLayoutProto>> Complete(const pb::DatasetProto& dataset,
                                                            const Scan& scan) const;

 private:
  // `reading`: the hash of what tells how the data set reads its files.
  std::string PathOf(uint64_t reading, const std::string& file) const;
  std::optional<pb::FileLayoutProto> Find(uint64_t reading, const std::string& file) const;
  absl::Status Keep(uint64_t reading, const std::string& file,
                    const pb::ScanFileReply& reply) const;

  const std::string folder_;
};

}  // namespace mu
