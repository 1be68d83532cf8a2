#include "worker/data/dataset_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/base/printable.h"
#include "common/graph/dataset_schema.h"
#include "common/records/dataset_files.h"
#include "worker/data/input_errors.h"

namespace mu {
namespace {

constexpr uint32_t kDefaultSpacing = 4096;

// What the proto says, without opening a file.
absl::StatusOr<std::shared_ptr<const RecordFormat>> Check(const pb::DatasetProto& dataset) {
  if (dataset.batch_size() == 0)
    return absl::InvalidArgumentError("batch_size is 0, but must be above");
  if (dataset.files().empty()) return absl::InvalidArgumentError("the dataset has no files");
  for (const pb::CompanionFilesProto& companion : dataset.companions()) {
    if (companion.files_size() != dataset.files_size()) {
      return absl::InvalidArgumentError(absl::StrCat("the dataset has ", dataset.files_size(),
                                                     " files, but ", companion.files_size(),
                                                     " of those that are read together with them"));
    }
  }
  absl::flat_hash_set<uint32_t> kept;
  for (uint32_t keep : dataset.records().keep()) {
    if (!kept.insert(keep).second)
      return absl::InvalidArgumentError(absl::StrCat("records: keep has ", keep, " twice"));
    if (keep >= dataset.records().modulo()) {
      return absl::InvalidArgumentError(absl::StrCat("records: keep has ", keep,
                                                     ", which is not below modulo (",
                                                     dataset.records().modulo(), ")"));
    }
  }
  return MakeRecordFormat(dataset);
}

// The files that are read in lockstep must hold equally many records.
absl::Status CheckEqual(const std::vector<DataFile>& parts) {
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::optional<FixedRecords> first = parts[0].format->finder->fixed();
    const std::optional<FixedRecords> other = parts[i].format->finder->fixed();
    if (!first.has_value() || !other.has_value())
      return absl::InternalError("only files of fixed-size records can be read in lockstep");
    if (first->records != other->records) {
      return absl::InvalidArgumentError(absl::StrCat(
          parts[0].path, " holds ", first->records, " records, but ", parts[i].path, " holds ",
          other->records, "; record i of one belongs to record i of the other"));
    }
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

}  // namespace

struct DatasetReader::Reading {
  struct Buffer {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
    const char* at = nullptr;  // of a part behind the first: its next record
  };
  ColumnSet columns;
  LeaseData::Bad bad;
  bool marks_bad = false;  // whether the place of a bad record means something
  OpenFiles files;
  std::vector<Buffer> buffers;  // of the parts
  std::string error;
};

DatasetReader::DatasetReader(const pb::DatasetProto& dataset,
                             std::shared_ptr<const RecordFormat> format,
                             std::shared_ptr<FileCache> cache, size_t most_lease_bytes)
    : dataset_(dataset),
      format_(std::move(format)),
      cache_(std::move(cache)),
      inline_files_(dataset_),
      selection_(dataset.records()),
      most_lease_bytes_(most_lease_bytes) {
  for (int i = 0; i < dataset.files_size(); ++i) files_.push_back(std::make_unique<File>());
}

absl::StatusOr<std::shared_ptr<DatasetReader>> DatasetReader::Create(
    const pb::DatasetProto& dataset, std::shared_ptr<FileCache> cache, size_t most_lease_bytes) {
  absl::StatusOr<std::shared_ptr<const RecordFormat>> format = Check(dataset);
  if (!format.ok()) {
    return WithKind(Annotate(format.status(), absl::StrCat("dataset \"", dataset.name(), "\"")),
                    pb::ERROR_USER, pb::ROLE_WORKER);
  }
  return std::shared_ptr<DatasetReader>(
      new DatasetReader(dataset, *std::move(format), std::move(cache), most_lease_bytes));
}

absl::StatusOr<KnownFile> DatasetReader::Know(uint32_t file, bool with_index) {
  if (file >= files_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("file ", file, " of dataset \"", dataset_.name(),
                                                   "\", which has ", files_.size()));
  }
  File& entry = *files_[file];
  MutexLock lock(&entry.mutex);
  KnownFile& known = entry.known;
  if (!known.parts.empty() && (known.index != nullptr || !with_index)) return known;
  const uint32_t spacing =
      dataset_.block_records() == 0 ? kDefaultSpacing : dataset_.block_records();
  KnownFile found;
  for (const std::string& path : PartsOfFile(dataset_, static_cast<int>(file))) {
    const size_t part = found.parts.size();
    MU_ASSIGN_OR_RETURN(DataFile looked,
                        DataFile::Look(path, format_, static_cast<int>(part), spacing, access(),
                                       with_index && part == 0 ? &found.index : nullptr));
    if (!known.parts.empty() && !IsSameFile(looked.source, known.parts[part].source))
      return FileChanged(path);
    found.parts.push_back(std::move(looked));
  }
  MU_RETURN_IF_ERROR(CheckEqual(found.parts));
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
  for (const uint32_t beginning : known->index->beginnings) layout.add_beginnings(beginning);
  return layout;
}

absl::StatusOr<const OpenFile*> DatasetReader::OpenFor(const pb::BlockProto& block,
                                                       OpenFiles* files) {
  OpenFile& file = files->At(block.file());
  const bool with_index = block.bytes() == 0;
  if (file.known.parts.empty() || (with_index && file.known.index == nullptr)) {
    MU_ASSIGN_OR_RETURN(file.known, Know(block.file(), with_index));
  }
  MU_RETURN_IF_ERROR(files->Open(&file));
  return &file;
}

absl::StatusOr<FileIndex::Range> DatasetReader::Locate(const pb::BlockProto& block,
                                                       const OpenFile& file) {
  FileIndex::Range range{
      .offset = block.offset(), .size = block.bytes(), .line = block.line(), .skip = 0};
  if (block.bytes() == 0) {
    const FileIndex& index = *file.known.index;
    if (index.bytes != file.size) return FileChanged(index.path);
    if (block.first() > index.records || block.count() > index.records - block.first()) {
      return absl::InvalidArgumentError(absl::StrCat("a block holds records ", block.first(),
                                                     " to ", block.first() + block.count(), " of ",
                                                     index.path, ", which has ", index.records));
    }
    if (block.count() > 0) range = index.Locate(block.first(), block.count());
  }
  const bool other_length = block.file_bytes() != 0 && block.file_bytes() != file.size;
  if (other_length || range.offset > file.size || range.size > file.size - range.offset)
    return FileDiffers(file.known.path());
  if (block.count() > range.size) {
    return absl::InvalidArgumentError(absl::StrCat("a block of ", file.known.path(), " claims ",
                                                   block.count(), " records in ", range.size,
                                                   " bytes"));
  }
  return range;
}

absl::StatusOr<std::shared_ptr<const LeaseData>> DatasetReader::Read(const pb::LeaseProto& lease) {
  OpenFiles files(access());
  uint64_t selected = 0;
  // All blocks are looked at before memory for them is taken.
  for (const pb::BlockProto& block : lease.blocks()) {
    const absl::StatusOr<const OpenFile*> file = OpenFor(block, &files);
    if (!file.ok()) return ErrorOfInput(file.status(), block.file());
    MU_RETURN_IF_ERROR(ErrorOfInput(Locate(block, **file).status(), block.file()));
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
                  .marks_bad = lease.permutation() == 0,
                  .files = std::move(files),
                  .buffers = std::vector<Reading::Buffer>(static_cast<size_t>(format_->parts()))};
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

absl::Status DatasetReader::FillBuffers(const pb::BlockProto& block, const OpenFile& open,
                                        const FileIndex::Range& range, Reading* reading) const {
  for (size_t part = 0; part < open.known.parts.size(); ++part) {
    const DataFile& file = open.known.parts[part];
    uint64_t offset = range.offset, size = range.size;
    if (part > 0) {
      const FixedRecords fixed = *file.format->finder->fixed();
      if (block.first() > fixed.records || block.count() > fixed.records - block.first())
        return FileChanged(file.path);
      offset = fixed.head_bytes + block.first() * fixed.record_bytes;
      size = block.count() * fixed.record_bytes;
    }
    Reading::Buffer& buffer = reading->buffers[part];
    if (buffer.size < size + kRecordPadding) {
      buffer.size = size + kRecordPadding;
      buffer.bytes.reset(new char[buffer.size]);
    }
    MU_RETURN_IF_ERROR(PreadAll(open.fds[part].get(), buffer.bytes.get(), size, offset, file.path));
    std::fill_n(buffer.bytes.get() + size, kRecordPadding, '\0');
    buffer.at = buffer.bytes.get();
  }
  return absl::OkStatus();
}

absl::Status DatasetReader::CheckBeginning(const pb::BlockProto& block, const OpenFile& open,
                                           const char* bytes) {
  // Without a length it is a lease of an earlier version.
  if (block.file_bytes() == 0 || block.bytes() == 0) return absl::OkStatus();
  BlockBeginning beginning;
  beginning.Add({bytes, static_cast<size_t>(block.bytes())});
  const uint64_t end = block.offset() + block.bytes();
  if (!beginning.full() && end < open.size) {  // a short block, and the file goes on behind it
    char rest[BlockBeginning::kBytes];
    const uint64_t size = std::min<uint64_t>(BlockBeginning::kBytes, open.size - end);
    MU_RETURN_IF_ERROR(PreadAll(open.fds[0].get(), rest, size, end, open.known.path()));
    beginning.Add({rest, static_cast<size_t>(size)});
  }
  return beginning.crc() == block.beginning() ? absl::OkStatus() : FileDiffers(open.known.path());
}

absl::Status DatasetReader::OnBadRecord(const std::string& place, Reading* reading) const {
  reading->columns.DropRow();
  // Files may hold any bytes, messages may not.
  std::string message = Printable(absl::StrCat(place, ": ", reading->error));
  if (dataset_.on_bad_record() == pb::ON_BAD_RECORD_FAIL) {
    return absl::InvalidArgumentError(absl::StrCat(
        message,
        "; mend the file, or leave such records out with on_bad_record: skip. A training run that "
        "ends here can be continued with skip; a mended file needs a new run, in another job_dir"));
  }
  if (reading->marks_bad) reading->bad.marked.push_back({reading->columns.rows(), message});
  if (reading->bad.records++ == 0) reading->bad.first = std::move(message);
  return absl::OkStatus();
}

absl::Status DatasetReader::ReadBlock(const pb::BlockProto& block, Reading* reading) {
  MU_ASSIGN_OR_RETURN(const OpenFile* const file, OpenFor(block, &reading->files));
  const OpenFile& open = *file;
  const std::vector<DataFile>& parts = open.known.parts;
  MU_ASSIGN_OR_RETURN(const FileIndex::Range range, Locate(block, open));
  MU_RETURN_IF_ERROR(FillBuffers(block, open, range, reading));
  MU_RETURN_IF_ERROR(CheckBeginning(block, open, reading->buffers[0].at));

  const RecordFinder& finder = *parts[0].format->finder;
  const char* const begin = reading->buffers[0].at;
  const char* const end = begin + range.size;
  const char* p = begin;
  uint64_t line = range.line;
  const uint64_t stop = uint64_t{range.skip} + block.count();
  FoundRecord found;
  for (uint64_t i = 0; i < stop; ++i) {
    if (finder.Find(p, end, /*last=*/true, line, &found) != FindResult::kFound)
      return block.bytes() == 0 ? FileChanged(parts[0].path) : FileDiffers(parts[0].path);
    p = found.next;
    line = found.next_line;
    if (i < range.skip) continue;
    const uint64_t record = block.first() + (i - range.skip);
    const bool keeps = selection_.Keeps(record);
    bool good =
        !keeps || parts[0].format->parser->Parse(found.text, &reading->columns, &reading->error);
    size_t wrong = 0;  // the part at fault
    for (size_t part = 1; part < parts.size(); ++part) {
      const FixedRecords fixed = *parts[part].format->finder->fixed();
      const absl::string_view text(reading->buffers[part].at, fixed.record_bytes);
      reading->buffers[part].at += fixed.record_bytes;
      if (!keeps || !good) continue;
      good = parts[part].format->parser->Parse(text, &reading->columns, &reading->error);
      if (!good) wrong = part;
    }
    if (!keeps) continue;
    if (good) {
      reading->columns.CommitRow();
      continue;
    }
    const std::optional<FixedRecords> fixed = parts[wrong].format->finder->fixed();
    const uint64_t offset = fixed.has_value()
                                ? fixed->head_bytes + record * fixed->record_bytes
                                : range.offset + static_cast<uint64_t>(found.text.data() - begin);
    MU_RETURN_IF_ERROR(OnBadRecord(format_->Place(parts[wrong].path, found.line, offset), reading));
  }
  return absl::OkStatus();
}

}  // namespace mu
