// Reads leases of a dataset: finds the blocks in the files, parses the selected records, permutes
// them.
//
// Any block of a file can be read at any time. Layout() looks through a whole file (gzip, zstd:
// while unpacking it into the FileCache) and tells where every `block_records`-th record begins.
// Leases made from it say where their blocks are, so that a worker which is new reads those and
// nothing else; for other leases the file is looked through first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/records/record_format.h"
#include "common/records/record_selection.h"
#include "proto/dataset.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/file_cache.h"
#include "worker/data/file_index.h"
#include "worker/data/lease_data.h"
#include "worker/data/open_files.h"

namespace mu {

// Thread safe. Errors carry an ErrorDetail: of kind ERROR_USER where data or job are at fault, else
// what this machine lacks (see input_errors.h).
// Codes: INVALID_ARGUMENT: a bad record ("file:line: column X: ...") or header; a lease that does
// not fit the files. NOT_FOUND, PERMISSION_DENIED: a file. DATA_LOSS: a compressed file is
// truncated or corrupt. FAILED_PRECONDITION: a file has changed since it was indexed, or is not the
// one from which the lease was made.
// RESOURCE_EXHAUSTED: the cache or the disk is too small; the job's, a lease is too large.
class DatasetReader {
 public:
  // INVALID_ARGUMENT if the proto does not make sense; opens no file yet. `most_lease_bytes`: of
  // the records of one lease; 0: any.
  static absl::StatusOr<std::shared_ptr<DatasetReader>> Create(const muster::DatasetProto& dataset,
                                                               std::shared_ptr<FileCache> cache,
                                                               size_t most_lease_bytes = 0);

  // Looks through the file on first use.
  absl::StatusOr<muster::FileLayoutProto> Layout(uint32_t file);

  absl::StatusOr<std::shared_ptr<const LeaseData>> Read(const muster::LeaseProto& lease);

  const muster::DatasetProto& dataset() const { return dataset_; }

 private:
  struct File {
    Mutex mutex;  // held while the file is looked at, so that others wait for it
    KnownFile known ABSL_GUARDED_BY(mutex);
  };
  struct Reading;  // one lease

  DatasetReader(const muster::DatasetProto& dataset, std::shared_ptr<const RecordFormat> format,
                std::shared_ptr<FileCache> cache, size_t most_lease_bytes);
  FileAccess access() { return {cache_.get(), &inline_files_}; }
  absl::StatusOr<KnownFile> Know(uint32_t file, bool with_index);
  // The block's files, open until another block asks for its own; finds out what the block needs.
  absl::StatusOr<const OpenFile*> OpenFor(const muster::BlockProto& block, OpenFiles* files);
  // Where the block is; FAILED_PRECONDITION if the file has another length than that of the lease.
  static absl::StatusOr<FileIndex::Range> Locate(const muster::BlockProto& block,
                                                 const OpenFile& file);
  // RESOURCE_EXHAUSTED, the job's, if a lease of so many records with so many bytes is too large.
  absl::Status CheckLeaseBytes(uint64_t records, size_t bytes) const;
  absl::Status ReadBlock(const muster::BlockProto& block, Reading* reading);
  // The bytes of all parts of the block. Those of the first are followed by padding.
  absl::Status FillBuffers(const muster::BlockProto& block, const OpenFile& open,
                           const FileIndex::Range& range, Reading* reading) const;
  // FAILED_PRECONDITION if the bytes of the block, which has a place, are not those that were there
  // when the lease was made.
  static absl::Status CheckBeginning(const muster::BlockProto& block, const OpenFile& open,
                                     const char* bytes);
  absl::Status OnBadRecord(const std::string& place, Reading* reading) const;

  const muster::DatasetProto dataset_;
  const std::shared_ptr<const RecordFormat> format_;
  const std::shared_ptr<FileCache> cache_;
  InlineFiles inline_files_;
  const RecordSelection selection_;
  const size_t most_lease_bytes_;
  std::vector<std::unique_ptr<File>> files_;
};

}  // namespace mu
