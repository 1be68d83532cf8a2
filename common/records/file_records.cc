#include "common/records/file_records.h"

#include "absl/strings/str_cat.h"
#include "common/env/compression.h"
#include "common/env/file.h"

namespace mu {

absl::Status WrongFileSize(absl::string_view path, const FixedRecords& fixed, uint64_t bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": its head promises ", fixed.records, " records of ", fixed.record_bytes,
                   " bytes, so that the file has ", fixed.bytes(), " bytes, but it has ", bytes,
                   bytes < fixed.bytes()
                       ? "; it is not complete: copy it anew"
                       : "; what follows the last record is not the array's: write the file anew"));
}

namespace {

// What the head says against the file's size, where that is to be seen without unpacking it.
absl::Status CheckSize(const std::string& path, const FixedRecords& fixed) {
  MU_ASSIGN_OR_RETURN(const Compression compression, DetectCompression(path));
  MU_ASSIGN_OR_RETURN(const FileInfo info, GetFileInfo(path));
  if (compression != Compression::kNone || info.size == fixed.bytes()) return absl::OkStatus();
  return WrongFileSize(path, fixed, info.size);
}

}  // namespace

absl::Status FileRecords::Open(absl::Span<const std::string> paths,
                               std::vector<std::string>* problems) {
  const size_t before = problems->size();
  for (size_t i = 0; i < paths.size(); ++i) {
    const int part = static_cast<int>(i);
    MU_ASSIGN_OR_RETURN(RecordStream stream, RecordStream::Open(paths[i], *format_, part));
    for (const std::string& problem : format_->HeadProblems(part, stream.head()))
      problems->push_back(absl::StrCat(stream.head_place(), ": ", problem));
    if (problems->size() > before) return absl::OkStatus();
    MU_ASSIGN_OR_RETURN(FileFormat opened, format_->Open(part, stream.head()));
    if (const std::optional<FixedRecords> fixed = opened.finder->fixed(); fixed.has_value())
      MU_RETURN_IF_ERROR(CheckSize(paths[i], *fixed));
    parts_.push_back({std::move(stream), std::move(opened)});
    const std::optional<FixedRecords> first = parts_.front().format.finder->fixed();
    const std::optional<FixedRecords> last = parts_.back().format.finder->fixed();
    if (i > 0 && first->records != last->records) {
      problems->push_back(absl::StrCat(paths[0], " holds ", first->records, " records, but ",
                                       paths[i], " holds ", last->records,
                                       "; record i of one belongs to record i of the other"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<FileRecords::Next> FileRecords::ParseNext(bool keep, ColumnSet* columns) {
  Next result = Next::kGood;
  for (Part& part : parts_) {
    absl::string_view record;
    MU_ASSIGN_OR_RETURN(const bool found, part.stream.Next(*part.format.finder, &record));
    if (!found) return Next::kEnd;
    if (&part == &parts_.front()) record_ = record;
    std::string error;
    if (!keep || result == Next::kBad || part.format.parser->Parse(record, columns, &error))
      continue;
    problem_ = absl::StrCat(part.stream.place(), ": ", error);
    result = Next::kBad;
  }
  return result;
}

}  // namespace mu
