#include "common/records/first_records.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/env/compression.h"
#include "common/env/file.h"
#include "common/graph/dataset_schema.h"
#include "common/records/record_parser.h"
#include "common/records/record_selection.h"

namespace mu {
namespace {

constexpr size_t kChunkBytes = size_t{16} << 10;
constexpr size_t kShownBadRecords = 3;

// The records at the beginning of a file, one after the other, from its unpacked bytes.
class RecordStream {
 public:
  static absl::StatusOr<RecordStream> Open(const std::string& path, const RecordSyntax& syntax) {
    MU_ASSIGN_OR_RETURN(const FileInfo info, GetFileInfo(path));
    if (info.directory)
      return absl::InvalidArgumentError(absl::StrCat(path, " is a directory, not a file"));
    RecordStream stream(path, syntax);
    MU_ASSIGN_OR_RETURN(stream.bytes_, OpenUnpacked(path));
    MU_RETURN_IF_ERROR(stream.ReadMore());
    while (!stream.ended_ && stream.text_.size() < kByteOrderMark.size())
      MU_RETURN_IF_ERROR(stream.ReadMore());
    if (absl::StartsWith(stream.text_, kByteOrderMark)) stream.at_ = kByteOrderMark.size();
    return stream;
  }

  // False at the end of the file. The record is valid until the next call; kRecordPadding bytes
  // stand behind it.
  absl::StatusOr<bool> Next(absl::string_view* record, uint64_t* line) {
    while (true) {
      FoundRecord found;
      const char* const begin = text_.data();
      const FindResult result =
          FindRecord(syntax_, begin + at_, begin + text_.size(), ended_, line_, &found);
      at_ = static_cast<size_t>(found.next - begin);
      line_ = found.next_line;
      if (result == FindResult::kEnd) return false;
      if (result == FindResult::kFound) {
        *line = found.line;
        padded_.assign(found.text.data(), found.text.size());
        padded_.append(kRecordPadding, '\0');
        *record = absl::string_view(padded_).substr(0, found.text.size());
        return true;
      }
      if (text_.size() - at_ > kMaxLine) return LineTooLong(path_, line_);
      MU_RETURN_IF_ERROR(ReadMore());
    }
  }

 private:
  RecordStream(const std::string& path, const RecordSyntax& syntax)
      : path_(path), syntax_(syntax) {}

  absl::Status ReadMore() {
    text_.erase(0, at_);
    at_ = 0;
    const size_t held = text_.size();
    text_.resize(held + kChunkBytes);
    const absl::StatusOr<size_t> read = bytes_->Read(text_.data() + held, kChunkBytes);
    text_.resize(held + (read.ok() ? *read : 0));
    if (!read.ok()) return read.status();
    ended_ = *read == 0;
    return absl::OkStatus();
  }

  std::string path_;
  RecordSyntax syntax_;
  std::unique_ptr<ByteStream> bytes_;
  std::string text_;   // bytes of the file
  size_t at_ = 0;      // in text_: where the next record is looked for
  uint64_t line_ = 1;  // at at_
  bool ended_ = false;
  std::string padded_;
};

// The lines of bad records among the first ones, and what is to be said of them.
struct BadRecords {
  std::vector<std::string> shown;
  uint64_t count = 0;
  uint64_t good = 0;
};

void ReportBadRecords(const pb::DatasetProto& dataset, const std::string& path, uint64_t most,
                      BadRecords bad, FirstRecords* result) {
  if (bad.count == 0) return;
  if (dataset.on_bad_record() == pb::ON_BAD_RECORD_SKIP) {
    if (bad.good > 0 || result->records < most) return;
    result->problems.push_back(
        absl::StrCat(path, ": none of its first ", bad.count,
                     " records is good; is this the right format? The first: ", bad.shown.front()));
    return;
  }
  for (std::string& shown : bad.shown) {
    result->problems.push_back(
        absl::StrCat(shown, "; mend the file, or leave such records out with on_bad_record: skip"));
  }
  if (bad.count > bad.shown.size()) {
    result->problems.push_back(absl::StrCat(path, ": ", bad.count - bad.shown.size(),
                                            " more of its first ", result->records,
                                            " records are bad"));
  }
}

absl::Status Read(const pb::DatasetProto& dataset, const std::string& path, uint64_t most,
                  FirstRecords* result) {
  const RecordSyntax syntax = SyntaxOf(dataset);
  MU_ASSIGN_OR_RETURN(RecordStream stream, RecordStream::Open(path, syntax));
  absl::string_view record;
  uint64_t line = 1;
  std::string header;
  if (syntax.header) {
    MU_ASSIGN_OR_RETURN(const bool found, stream.Next(&record, &line));
    if (!found) return HeaderMissing(path);
    header = std::string(record);
    for (const std::string& problem : HeaderProblems(dataset, header)) {
      result->problems.push_back(absl::StrCat(path, ":", line, ": ", problem));
    }
    if (!result->problems.empty()) return absl::OkStatus();
  }
  MU_ASSIGN_OR_RETURN(const std::unique_ptr<RecordParser> parser,
                      MakeRecordParser(dataset, header));
  const RecordSelection selection(dataset.records());
  ColumnSet columns(SchemaOf(dataset), /*capacity=*/1);
  BadRecords bad;
  absl::Status broken;
  for (; result->records < most; ++result->records) {
    const absl::StatusOr<bool> found = stream.Next(&record, &line);
    broken = found.status();
    if (!found.ok() || !*found) break;
    if (!selection.Keeps(result->records)) continue;
    std::string error;
    if (parser->Parse(record, &columns, &error)) {
      ++bad.good;
    } else if (bad.count++ < kShownBadRecords) {
      bad.shown.push_back(absl::StrCat(path, ":", line, ": ", error));
    }
    columns.DropRow();
  }
  ReportBadRecords(dataset, path, most, std::move(bad), result);
  return broken;
}

}  // namespace

FirstRecords ReadFirstRecords(const pb::DatasetProto& dataset, const std::string& path,
                              uint64_t most) {
  FirstRecords result;
  const absl::Status status = Read(dataset, path, most, &result);
  if (!status.ok()) result.problems.emplace_back(status.message());
  // Files may hold any bytes, messages may not.
  for (std::string& problem : result.problems) problem = ValidUtf8(problem);
  return result;
}

}  // namespace mu
