#include "worker/data/dataset_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/base/text.h"
#include "common/env/compression.h"
#include "common/graph/dataset_schema.h"
#include "worker/data/input_errors.h"

namespace mu {
namespace {

constexpr uint32_t kDefaultSpacing = 4096;
constexpr size_t kScanBytes = size_t{1} << 20;
constexpr size_t kHeaderBytes = size_t{16} << 10;

absl::Status Changed(const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat(path,
                   " has changed since the job began to read it; files must stay as they are while "
                   "a job uses them"));
}

bool IsSame(const FileInfo& a, const FileInfo& b) {
  return a.size == b.size && a.modified_ns == b.modified_ns && a.inode == b.inode;
}

absl::Status PreadAll(int fd, char* buffer, uint64_t size, uint64_t offset,
                      const std::string& path) {
  while (size > 0) {
    const ssize_t n = pread(fd, buffer, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "read", path);
    if (n == 0) return Changed(path);
    buffer += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::Status Scan(int fd, const std::string& path, FileIndexer* indexer, bool header_only = false) {
  const std::unique_ptr<char[]> buffer(new char[kScanBytes]);
  uint64_t offset = 0;
  const size_t step = header_only ? kHeaderBytes : kScanBytes;
  while (!header_only || !indexer->header_seen()) {
    const ssize_t n = pread(fd, buffer.get(), step, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "read", path);
    if (n == 0) return absl::OkStatus();
    MU_RETURN_IF_ERROR(indexer->Write(absl::string_view(buffer.get(), static_cast<size_t>(n))));
    offset += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

// What so many records take, with one value in each list; these grow when they are read.
size_t BytesFor(const std::vector<pb::ColumnSchema>& schema, uint64_t records) {
  size_t bytes = 0;
  for (const pb::ColumnSchema& column : schema) {
    const auto& dims = column.shape().dims();
    size_t values = dims.empty() || dims[0] != -1 ? 0 : 1;
    for (int axis = 1; axis < dims.size(); ++axis) values *= static_cast<size_t>(dims[axis]);
    bytes += values * ElementSize(column.dtype());
  }
  return bytes * records;
}

absl::StatusOr<UniqueFd> OpenPlain(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoToStatus(errno, "open", path);
  return fd;
}

}  // namespace

struct DatasetReader::Reading {
  ColumnSet columns;
  LeaseData::Bad bad;
  absl::flat_hash_map<uint32_t, OpenFile> files;
  std::unique_ptr<char[]> buffer;
  size_t buffer_size = 0;
  std::string error;
};

DatasetReader::DatasetReader(const pb::DatasetProto& dataset, std::shared_ptr<FileCache> cache,
                             size_t most_lease_bytes)
    : dataset_(dataset),
      cache_(std::move(cache)),
      selection_(dataset.records()),
      most_lease_bytes_(most_lease_bytes) {
  for (int i = 0; i < dataset.files_size(); ++i) files_.push_back(std::make_unique<File>());
}

absl::StatusOr<std::shared_ptr<DatasetReader>> DatasetReader::Create(
    const pb::DatasetProto& dataset, std::shared_ptr<FileCache> cache, size_t most_lease_bytes) {
  const auto check = [&]() -> absl::Status {
    if (dataset.batch_size() == 0)
      return absl::InvalidArgumentError("batch_size is 0, but must be above");
    if (dataset.files().empty()) return absl::InvalidArgumentError("the dataset has no files");
    absl::flat_hash_set<uint32_t> kept;
    for (uint32_t keep : dataset.records().keep()) {
      if (!kept.insert(keep).second) {
        return absl::InvalidArgumentError(absl::StrCat("records: keep has ", keep, " twice"));
      }
      if (keep >= dataset.records().modulo()) {
        return absl::InvalidArgumentError(absl::StrCat("records: keep has ", keep,
                                                       ", which is not below modulo (",
                                                       dataset.records().modulo(), ")"));
      }
    }
    return CheckFormat(dataset);
  };
  if (absl::Status status = check(); !status.ok()) {
    return WithKind(Annotate(status, absl::StrCat("dataset \"", dataset.name(), "\"")),
                    pb::ERROR_USER, pb::ROLE_WORKER);
  }
  return std::shared_ptr<DatasetReader>(
      new DatasetReader(dataset, std::move(cache), most_lease_bytes));
}

absl::StatusOr<UniqueFd> DatasetReader::Open(const KnownFile& file, ChunkSink* sink,
                                             bool* fed) const {
  MU_ASSIGN_OR_RETURN(const FileInfo now, GetFileInfo(file.path));
  if (!IsSame(now, file.source)) return Changed(file.path);
  return file.compressed ? cache_->Open(file.path, file.source, sink, fed) : OpenPlain(file.path);
}

absl::Status DatasetReader::MakeParser(KnownFile* file, const std::string& header,
                                       uint64_t header_line) const {
  absl::StatusOr<std::unique_ptr<RecordParser>> parser = MakeRecordParser(dataset_, header);
  if (!parser.ok()) {
    return absl::Status(
        parser.status().code(),
        ValidUtf8(absl::StrCat(file->path, ":", header_line, ": ", parser.status().message())));
  }
  file->parser = *std::move(parser);
  return absl::OkStatus();
}

absl::Status DatasetReader::LookThrough(KnownFile* file) const {
  const uint32_t spacing =
      dataset_.block_records() == 0 ? kDefaultSpacing : dataset_.block_records();
  FileIndexer indexer(file->path, SyntaxOf(dataset_), spacing);
  bool fed = false;
  MU_ASSIGN_OR_RETURN(const UniqueFd fd, Open(*file, &indexer, &fed));
  if (!fed) MU_RETURN_IF_ERROR(Scan(fd.get(), file->path, &indexer));
  MU_ASSIGN_OR_RETURN(FileIndex index, indexer.Finish());
  MU_ASSIGN_OR_RETURN(const FileInfo now, GetFileInfo(file->path));
  if (!IsSame(now, file->source)) return Changed(file->path);
  MU_RETURN_IF_ERROR(MakeParser(file, index.header, index.header_line));
  file->index = std::make_shared<const FileIndex>(std::move(index));
  return absl::OkStatus();
}

absl::Status DatasetReader::ReadHeader(KnownFile* file) const {
  const RecordSyntax syntax = SyntaxOf(dataset_);
  if (!syntax.header) return MakeParser(file, "", 1);
  FileIndexer indexer(file->path, syntax, /*spacing=*/1);
  MU_ASSIGN_OR_RETURN(const UniqueFd fd, Open(*file));
  MU_RETURN_IF_ERROR(Scan(fd.get(), file->path, &indexer, /*header_only=*/true));
  if (!indexer.header_seen()) MU_RETURN_IF_ERROR(indexer.Finish().status());
  return MakeParser(file, indexer.header(), indexer.header_line());
}

absl::StatusOr<DatasetReader::KnownFile> DatasetReader::Know(uint32_t file, bool with_index) {
  if (file >= files_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("file ", file, " of dataset \"", dataset_.name(),
                                                   "\", which has ", files_.size()));
  }
  File& entry = *files_[file];
  MutexLock lock(&entry.mutex);
  KnownFile& known = entry.known;
  if (known.parser != nullptr && (known.index != nullptr || !with_index)) return known;
  KnownFile found;
  found.path = dataset_.files(static_cast<int>(file));
  MU_ASSIGN_OR_RETURN(found.source, GetFileInfo(found.path));
  if (found.source.directory) {
    return absl::InvalidArgumentError(absl::StrCat(found.path, " is a directory, not a file"));
  }
  if (known.parser != nullptr && !IsSame(found.source, known.source)) return Changed(found.path);
  MU_ASSIGN_OR_RETURN(const Compression compression, DetectCompression(found.path));
  found.compressed = compression != Compression::kNone;
  MU_RETURN_IF_ERROR(with_index ? LookThrough(&found) : ReadHeader(&found));
  known = std::move(found);
  return known;
}

absl::StatusOr<pb::FileLayoutProto> DatasetReader::Layout(uint32_t file) {
  const absl::StatusOr<KnownFile> known = Know(file, /*with_index=*/true);
  if (!known.ok()) return ErrorOfInput(known.status(), file);
  pb::FileLayoutProto layout;
  layout.set_records(known->index->records);
  layout.set_bytes(known->index->bytes);
  if (dataset_.block_records() == 0) return layout;
  for (const FileIndex::Mark& mark : known->index->marks) {
    layout.add_offsets(mark.offset);
    layout.add_lines(mark.line);
  }
  return layout;
}

absl::Status DatasetReader::OpenFor(const pb::BlockProto& block, OpenFile* file) {
  const bool with_index = block.bytes() == 0;
  if (file->known.parser == nullptr || (with_index && file->known.index == nullptr)) {
    MU_ASSIGN_OR_RETURN(file->known, Know(block.file(), with_index));
  }
  if (!file->fd.valid()) {
    MU_ASSIGN_OR_RETURN(file->fd, Open(file->known));
    struct stat info;
    if (fstat(file->fd.get(), &info) != 0) return ErrnoToStatus(errno, "look at", file->known.path);
    file->size = static_cast<uint64_t>(info.st_size);
  }
  return absl::OkStatus();
}

absl::StatusOr<FileIndex::Range> DatasetReader::Locate(const pb::BlockProto& block,
                                                       const OpenFile& file) {
  FileIndex::Range range{
      .offset = block.offset(), .size = block.bytes(), .line = block.line(), .skip = 0};
  if (block.bytes() == 0) {
    const FileIndex& index = *file.known.index;
    if (index.bytes != file.size) return Changed(index.path);
    if (block.first() > index.records || block.count() > index.records - block.first()) {
      return absl::InvalidArgumentError(absl::StrCat("a block holds records ", block.first(),
                                                     " to ", block.first() + block.count(), " of ",
                                                     index.path, ", which has ", index.records));
    }
    if (block.count() > 0) range = index.Locate(block.first(), block.count());
  }
  if (range.offset > file.size || range.size > file.size - range.offset)
    return Changed(file.known.path);
  if (block.count() > range.size) {
    return absl::InvalidArgumentError(absl::StrCat("a block of ", file.known.path, " claims ",
                                                   block.count(), " records in ", range.size,
                                                   " bytes"));
  }
  return range;
}

absl::StatusOr<std::shared_ptr<const LeaseData>> DatasetReader::Read(const pb::LeaseProto& lease) {
  absl::flat_hash_map<uint32_t, OpenFile> files;
  uint64_t selected = 0;
  // All blocks are looked at before memory for them is taken.
  for (const pb::BlockProto& block : lease.blocks()) {
    OpenFile& file = files[block.file()];
    MU_RETURN_IF_ERROR(ErrorOfInput(OpenFor(block, &file), block.file()));
    MU_RETURN_IF_ERROR(ErrorOfInput(Locate(block, file).status(), block.file()));
    selected += selection_.Count(block.first(), block.count());
  }
  if (selected > std::numeric_limits<int32_t>::max()) {
    return WithKind(absl::InvalidArgumentError(
                        absl::StrCat("a lease of ", selected, " records; make blocks smaller")),
                    pb::ERROR_USER, pb::ROLE_WORKER);
  }
  const auto schema = SchemaOf(dataset_);
  MU_RETURN_IF_ERROR(CheckLeaseBytes(selected, BytesFor(schema, selected)));
  Reading reading{.columns = ColumnSet(schema, static_cast<uint32_t>(selected)),
                  .files = std::move(files)};
  for (const pb::BlockProto& block : lease.blocks()) {
    if (block.count() > 0)
      MU_RETURN_IF_ERROR(ErrorOfInput(ReadBlock(block, &reading), block.file()));
    MU_RETURN_IF_ERROR(CheckLeaseBytes(selected, reading.columns.bytes()));
  }
  return std::make_shared<const LeaseData>(std::move(reading.columns), std::move(reading.bad),
                                           lease.permutation(), dataset_.batch_size());
}

absl::Status DatasetReader::CheckLeaseBytes(uint64_t records, size_t bytes) const {
  if (most_lease_bytes_ == 0 || bytes <= most_lease_bytes_) return absl::OkStatus();
  return WithKind(
      absl::ResourceExhaustedError(absl::StrCat(
          "dataset \"", dataset_.name(), "\": a lease of ", records,
          " records takes more than the ", most_lease_bytes_ >> 20,
          " MB that one may take on this worker (--memory_limit); shuffle over fewer records "
          "(shuffle.records), or allow more")),
      pb::ERROR_USER, pb::ROLE_WORKER);
}

absl::Status DatasetReader::ReadBlock(const pb::BlockProto& block, Reading* reading) const {
  const OpenFile& open = reading->files.at(block.file());
  const KnownFile& file = open.known;
  MU_ASSIGN_OR_RETURN(const FileIndex::Range range, Locate(block, open));
  if (reading->buffer_size < range.size + kRecordPadding) {
    reading->buffer_size = range.size + kRecordPadding;
    reading->buffer.reset(new char[reading->buffer_size]);
  }
  MU_RETURN_IF_ERROR(
      PreadAll(open.fd.get(), reading->buffer.get(), range.size, range.offset, file.path));
  std::fill_n(reading->buffer.get() + range.size, kRecordPadding, '\0');

  const RecordSyntax syntax = SyntaxOf(dataset_);
  const char* p = reading->buffer.get();
  const char* const end = p + range.size;
  uint64_t line = range.line;
  const uint64_t stop = uint64_t{range.skip} + block.count();
  for (uint64_t i = 0; i < stop; ++i) {
    FoundRecord found;
    if (FindRecord(syntax, p, end, /*last=*/true, line, &found) != FindResult::kFound) {
      return Changed(file.path);
    }
    p = found.next;
    line = found.next_line;
    if (i < range.skip || !selection_.Keeps(block.first() + (i - range.skip))) continue;
    if (file.parser->Parse(found.text, &reading->columns, &reading->error)) {
      reading->columns.CommitRow();
      continue;
    }
    reading->columns.DropRow();
    // Files may hold any bytes, messages may not.
    std::string message = ValidUtf8(absl::StrCat(file.path, ":", found.line, ": ", reading->error));
    if (dataset_.on_bad_record() == pb::ON_BAD_RECORD_FAIL) {
      return absl::InvalidArgumentError(absl::StrCat(
          message, "; mend the file, or leave such records out with on_bad_record: skip"));
    }
    if (reading->bad.records++ == 0) reading->bad.first = std::move(message);
  }
  return absl::OkStatus();
}

}  // namespace mu
