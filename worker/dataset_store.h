// The datasets that are installed on this worker, and their leases read ahead.
//
// Thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "proto/dataset.pb.h"
#include "worker/data/dataset_reader.h"
#include "worker/data/file_cache.h"
#include "worker/data/lease_cache.h"

namespace mu {

class DatasetStore {
 public:
  struct Options {
    std::string cache_dir;        // unpacked copies of compressed files
    uint64_t cache_bytes = 0;     // of them
    size_t lease_bytes = 0;       // parsed leases held in memory
    size_t most_lease_bytes = 0;  // of one of them; 0: any
    int threads = 1;              // that read ahead
  };
  explicit DatasetStore(const Options& options)
      : files_(std::make_shared<FileCache>(options.cache_dir, options.cache_bytes)),
        most_lease_bytes_(options.most_lease_bytes),
        leases_(options.threads, options.lease_bytes) {}

  // A reader of this dataset, for Put; the one that is there if it is the same. INVALID_ARGUMENT
  // if it makes no sense.
  absl::StatusOr<std::shared_ptr<DatasetReader>> Prepare(const muster::DatasetProto& dataset);
  // Later runs read it in place of another one of this id.
  void Put(std::shared_ptr<DatasetReader> reader);

  // Null if there is none of this id.
  std::shared_ptr<DatasetReader> Find(uint64_t id) const;

  // Of another epoch. Runs under way keep what they have.
  void Clear();

  uint64_t unpacking() const { return files_->moves(); }
  LeaseCache& leases() { return leases_; }
  size_t lease_bytes() const { return leases_.bytes(); }

 private:
  const std::shared_ptr<FileCache> files_;
  const size_t most_lease_bytes_;
  LeaseCache leases_;
  mutable Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<DatasetReader>> readers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
