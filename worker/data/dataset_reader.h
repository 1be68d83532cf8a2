// Reads leases of a dataset: finds the blocks in the files, parses the selected records, permutes them.
//
// Any block of a file can be read at any time: one scan per file (plain) or one unpacking (gzip, zstd: into the
// FileCache) indexes where every `block_records`-th record begins. The index stays in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/env/unique_fd.h"
#include "proto/dataset.pb.h"
#include "worker/data/file_cache.h"
#include "worker/data/file_index.h"
#include "worker/data/lease_data.h"
#include "common/records/record_parser.h"
#include "common/records/record_selection.h"

namespace mu {

// Thread safe. Errors carry an ErrorDetail of kind ERROR_USER where data or job are at fault. Codes:
// INVALID_ARGUMENT: a bad record ("file:line: column X: ...") or header; a lease that does not fit the files.
// NOT_FOUND, PERMISSION_DENIED: a file. DATA_LOSS: a compressed file is truncated or corrupt.
// FAILED_PRECONDITION: a file has changed since it was indexed. RESOURCE_EXHAUSTED: the cache or the disk is too small.
class DatasetReader {
 public:
  // INVALID_ARGUMENT if the proto does not make sense; opens no file yet.
  static absl::StatusOr<std::shared_ptr<DatasetReader>> Create(const muster::DatasetProto& dataset,
                                                               std::shared_ptr<FileCache> cache);

  // Before selection, bad ones included, blank lines and the header not. Builds the file's index on first use.
  absl::StatusOr<uint64_t> CountRecords(uint32_t file);

  absl::StatusOr<std::shared_ptr<const LeaseData>> Read(const muster::LeaseProto& lease);

  const muster::DatasetProto& dataset() const { return dataset_; }

 private:
  struct File {
    Mutex mutex;  // held while the index is built, so that others wait for it
    std::shared_ptr<const FileIndex> index ABSL_GUARDED_BY(mutex);
    std::shared_ptr<const RecordParser> parser ABSL_GUARDED_BY(mutex);
  };
  struct IndexedFile {
    std::shared_ptr<const FileIndex> index;
    std::shared_ptr<const RecordParser> parser;
  };
  struct Reading;  // one lease

  DatasetReader(const muster::DatasetProto& dataset, std::shared_ptr<FileCache> cache);
  absl::StatusOr<IndexedFile> Index(uint32_t file);
  absl::StatusOr<FileIndex> BuildIndex(const std::string& path) const;
  absl::StatusOr<std::shared_ptr<const LeaseData>> ReadLease(const muster::LeaseProto& lease);
  absl::StatusOr<UniqueFd> OpenIndexed(const FileIndex& index) const;
  absl::Status ReadBlock(const muster::BlockProto& block, Reading* reading) const;

  const muster::DatasetProto dataset_;
  const std::shared_ptr<FileCache> cache_;
  const RecordSelection selection_;
  std::vector<std::unique_ptr<File>> files_;
};

}  // namespace mu
