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
#include "common/env/unique_fd.h"
#include "common/records/record_parser.h"
#include "common/records/record_selection.h"
#include "proto/dataset.pb.h"
#include "worker/data/file_cache.h"
#include "worker/data/file_index.h"
#include "worker/data/lease_data.h"

namespace mu {

// Thread safe. Errors carry an ErrorDetail: of kind ERROR_USER where data or job are at fault, else
// what this machine lacks (see input_errors.h).
// Codes: INVALID_ARGUMENT: a bad record ("file:line: column X: ...") or header; a lease that does
// not fit the files. NOT_FOUND, PERMISSION_DENIED: a file. DATA_LOSS: a compressed file is
// truncated or corrupt. FAILED_PRECONDITION: a file has changed since it was indexed.
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
  // What is known of a file; the index only if somebody needed it.
  struct KnownFile {
    std::string path;
    FileInfo source;  // as it was when it was first opened
    bool compressed = false;
    std::shared_ptr<const RecordParser> parser;
    std::shared_ptr<const FileIndex> index;
  };
  struct File {
    Mutex mutex;  // held while the file is looked at, so that others wait for it
    KnownFile known ABSL_GUARDED_BY(mutex);
  };
  struct OpenFile {
    KnownFile known;
    UniqueFd fd;
    uint64_t size = 0;  // unpacked
  };
  struct Reading;  // one lease

  DatasetReader(const muster::DatasetProto& dataset, std::shared_ptr<FileCache> cache,
                size_t most_lease_bytes);
  absl::StatusOr<KnownFile> Know(uint32_t file, bool with_index);
  absl::Status LookThrough(KnownFile* file) const;
  absl::Status ReadHeader(KnownFile* file) const;
  absl::Status MakeParser(KnownFile* file, const std::string& header, uint64_t header_line) const;
  // Finds out what the block needs, and opens its file, once.
  absl::Status OpenFor(const muster::BlockProto& block, OpenFile* file);
  // Where the block is; FAILED_PRECONDITION if the file is no longer so long.
  static absl::StatusOr<FileIndex::Range> Locate(const muster::BlockProto& block,
                                                 const OpenFile& file);
  absl::StatusOr<UniqueFd> Open(const KnownFile& file, ChunkSink* sink = nullptr,
                                bool* fed = nullptr) const;
  // RESOURCE_EXHAUSTED, the job's, if a lease of so many records with so many bytes is too large.
  absl::Status CheckLeaseBytes(uint64_t records, size_t bytes) const;
  absl::Status ReadBlock(const muster::BlockProto& block, Reading* reading) const;

  const muster::DatasetProto dataset_;
  const std::shared_ptr<FileCache> cache_;
  const RecordSelection selection_;
  const size_t most_lease_bytes_;
  std::vector<std::unique_ptr<File>> files_;
};

}  // namespace mu
