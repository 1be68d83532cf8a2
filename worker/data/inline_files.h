// Files that travel with a dataset (InlineFileProto), as files that can be read at any offset.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/env/unique_fd.h"
#include "proto/dataset.pb.h"

namespace mu {

// Thread safe. Each file is in memory once, beside the message.
class InlineFiles {
 public:
  explicit InlineFiles(const muster::DatasetProto& dataset);

  bool Has(const std::string& path) const { return contents_.count(path) != 0; }
  // A descriptor of its own. RESOURCE_EXHAUSTED: no memory.
  absl::StatusOr<UniqueFd> Open(const std::string& path);

 private:
  std::map<std::string, const std::string*> contents_;  // constant; of the dataset
  Mutex mutex_;
  std::map<std::string, UniqueFd> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
