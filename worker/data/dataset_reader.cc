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
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/env/compression.h"
#include "common/graph/dataset_schema.h"

namespace mu {
namespace {

constexpr uint32_t kDefaultSpacing = 4096;
constexpr size_t kScanBytes = size_t{1} << 20;

absl::Status ByUser(const absl::Status& status) {
  if (status.ok() || DetailOf(status).has_value() || KindOf(status) != pb::ERROR_USER) return status;
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_USER);
  detail.set_role(pb::ROLE_WORKER);
  return WithDetail(status, detail);
}

absl::Status Changed(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(
      path, " has changed since the job began to read it; files must stay as they are while a job uses them"));
}

bool IsSame(const FileInfo& a, const FileInfo& b) {
  return a.size == b.size && a.modified_ns == b.modified_ns && a.inode == b.inode;
}

absl::Status PreadAll(int fd, char* buffer, uint64_t size, uint64_t offset, const std::string& path) {
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

absl::Status Scan(int fd, const std::string& path, FileIndexer* indexer) {
  const std::unique_ptr<char[]> buffer(new char[kScanBytes]);
  uint64_t offset = 0;
  while (true) {
    const ssize_t n = pread(fd, buffer.get(), kScanBytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "read", path);
    if (n == 0) return absl::OkStatus();
    MU_RETURN_IF_ERROR(indexer->Write(absl::string_view(buffer.get(), static_cast<size_t>(n))));
    offset += static_cast<uint64_t>(n);
  }
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
  absl::flat_hash_map<uint32_t, IndexedFile> files;
  absl::flat_hash_map<uint32_t, UniqueFd> open;
  std::unique_ptr<char[]> buffer;
  size_t buffer_size = 0;
  std::string error;
};

DatasetReader::DatasetReader(const pb::DatasetProto& dataset, std::shared_ptr<FileCache> cache)
    : dataset_(dataset), cache_(std::move(cache)), selection_(dataset.records()) {
  for (int i = 0; i < dataset.files_size(); ++i) files_.push_back(std::make_unique<File>());
}

absl::StatusOr<std::shared_ptr<DatasetReader>> DatasetReader::Create(const pb::DatasetProto& dataset,
                                                                     std::shared_ptr<FileCache> cache) {
  const auto check = [&]() -> absl::Status {
    if (dataset.batch_size() == 0) return absl::InvalidArgumentError("batch_size is 0, but must be above");
    if (dataset.files().empty()) return absl::InvalidArgumentError("the dataset has no files");
    absl::flat_hash_set<uint32_t> kept;
    for (uint32_t keep : dataset.records().keep()) {
      if (!kept.insert(keep).second) {
        return absl::InvalidArgumentError(absl::StrCat("records: keep has ", keep, " twice"));
      }
      if (keep >= dataset.records().modulo()) {
        return absl::InvalidArgumentError(absl::StrCat("records: keep has ", keep, ", which is not below modulo (",
                                                       dataset.records().modulo(), ")"));
      }
    }
    return CheckFormat(dataset);
  };
  if (absl::Status status = check(); !status.ok()) {
    return ByUser(Annotate(status, absl::StrCat("dataset \"", dataset.name(), "\"")));
  }
  return std::shared_ptr<DatasetReader>(new DatasetReader(dataset, std::move(cache)));
}

absl::StatusOr<FileIndex> DatasetReader::BuildIndex(const std::string& path) const {
  MU_ASSIGN_OR_RETURN(const FileInfo source, GetFileInfo(path));
  if (source.directory) return absl::InvalidArgumentError(absl::StrCat(path, " is a directory, not a file"));
  MU_ASSIGN_OR_RETURN(const Compression compression, DetectCompression(path));
  const uint32_t spacing = dataset_.block_records() == 0 ? kDefaultSpacing : dataset_.block_records();
  FileIndexer indexer(path, SyntaxOf(dataset_), spacing);
  UniqueFd fd;
  bool fed = false;
  if (compression == Compression::kNone) {
    MU_ASSIGN_OR_RETURN(fd, OpenPlain(path));
  } else {
    MU_ASSIGN_OR_RETURN(fd, cache_->Open(path, source, &indexer, &fed));
  }
  if (!fed) MU_RETURN_IF_ERROR(Scan(fd.get(), path, &indexer));
  MU_ASSIGN_OR_RETURN(FileIndex index, indexer.Finish());
  index.source = source;
  index.compressed = compression != Compression::kNone;
  MU_ASSIGN_OR_RETURN(const FileInfo now, GetFileInfo(path));
  if (!IsSame(now, source)) return Changed(path);
  return index;
}

absl::StatusOr<DatasetReader::IndexedFile> DatasetReader::Index(uint32_t file) {
  if (file >= files_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("file ", file, " of dataset \"", dataset_.name(), "\", which has ", files_.size()));
  }
  const std::string& path = dataset_.files(static_cast<int>(file));
  File& entry = *files_[file];
  MutexLock lock(&entry.mutex);
  if (entry.index == nullptr) {
    MU_ASSIGN_OR_RETURN(FileIndex index, BuildIndex(path));
    absl::StatusOr<std::unique_ptr<RecordParser>> parser = MakeRecordParser(dataset_, index.header);
    if (!parser.ok()) {
      return absl::Status(parser.status().code(),
                          ValidUtf8(absl::StrCat(path, ":", index.header_line, ": ", parser.status().message())));
    }
    entry.parser = *std::move(parser);
    entry.index = std::make_shared<const FileIndex>(std::move(index));
  }
  return IndexedFile{entry.index, entry.parser};
}

absl::StatusOr<uint64_t> DatasetReader::CountRecords(uint32_t file) {
  const absl::StatusOr<IndexedFile> indexed = Index(file);
  if (!indexed.ok()) return ByUser(indexed.status());
  return indexed->index->records;
}

absl::StatusOr<std::shared_ptr<const LeaseData>> DatasetReader::Read(const pb::LeaseProto& lease) {
  absl::StatusOr<std::shared_ptr<const LeaseData>> data = ReadLease(lease);
  if (!data.ok()) return ByUser(data.status());
  return data;
}

absl::StatusOr<UniqueFd> DatasetReader::OpenIndexed(const FileIndex& index) const {
  MU_ASSIGN_OR_RETURN(const FileInfo now, GetFileInfo(index.path));
  if (!IsSame(now, index.source)) return Changed(index.path);
  UniqueFd fd;
  if (index.compressed) {
    MU_ASSIGN_OR_RETURN(fd, cache_->Open(index.path, index.source, nullptr, nullptr));
  } else {
    MU_ASSIGN_OR_RETURN(fd, OpenPlain(index.path));
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, "look at", index.path);
  if (static_cast<uint64_t>(info.st_size) != index.bytes) return Changed(index.path);
  return fd;
}

absl::StatusOr<std::shared_ptr<const LeaseData>> DatasetReader::ReadLease(const pb::LeaseProto& lease) {
  absl::flat_hash_map<uint32_t, IndexedFile> files;
  uint64_t selected = 0;
  for (const pb::BlockProto& block : lease.blocks()) {
    if (!files.contains(block.file())) {
      MU_ASSIGN_OR_RETURN(files[block.file()], Index(block.file()));
    }
    const FileIndex& index = *files[block.file()].index;
    if (block.first() > index.records || block.count() > index.records - block.first()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a block holds records ", block.first(), " to ", block.first() + block.count(), " of ",
                       index.path, ", which has ", index.records));
    }
    selected += selection_.Count(block.first(), block.count());
  }
  if (selected > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("a lease of ", selected, " records; make blocks smaller"));
  }
  Reading reading{.columns = ColumnSet(SchemaOf(dataset_), static_cast<uint32_t>(selected)),
                  .files = std::move(files)};
  for (const pb::BlockProto& block : lease.blocks()) {
    if (block.count() > 0) MU_RETURN_IF_ERROR(ReadBlock(block, &reading));
  }
  return std::make_shared<const LeaseData>(std::move(reading.columns), std::move(reading.bad),
                                           lease.permutation(), dataset_.batch_size());
}

absl::Status DatasetReader::ReadBlock(const pb::BlockProto& block, Reading* reading) const {
  const IndexedFile& file = reading->files.at(block.file());
  const FileIndex& index = *file.index;
  UniqueFd& fd = reading->open[block.file()];
  if (!fd.valid()) {
    MU_ASSIGN_OR_RETURN(fd, OpenIndexed(index));
  }
  const FileIndex::Range range = index.Locate(block.first(), block.count());
  if (reading->buffer_size < range.size + kRecordPadding) {
    reading->buffer_size = range.size + kRecordPadding;
    reading->buffer.reset(new char[reading->buffer_size]);
  }
  MU_RETURN_IF_ERROR(PreadAll(fd.get(), reading->buffer.get(), range.size, range.offset, index.path));
  std::fill_n(reading->buffer.get() + range.size, kRecordPadding, '\0');

  const RecordSyntax syntax = SyntaxOf(dataset_);
  const char* p = reading->buffer.get();
  const char* const end = p + range.size;
  uint64_t line = range.line;
  const uint64_t stop = uint64_t{range.skip} + block.count();
  for (uint64_t i = 0; i < stop; ++i) {
    FoundRecord found;
    if (FindRecord(syntax, p, end, /*last=*/true, line, &found) != FindResult::kFound) {
      return Changed(index.path);
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
    std::string message = ValidUtf8(absl::StrCat(index.path, ":", found.line, ": ", reading->error));
    if (dataset_.on_bad_record() == pb::ON_BAD_RECORD_FAIL) {
      return absl::InvalidArgumentError(
          absl::StrCat(message, "; mend the file, or leave such records out with on_bad_record: skip"));
    }
    if (reading->bad.records++ == 0) reading->bad.first = std::move(message);
  }
  return absl::OkStatus();
}

}  // namespace mu
