#include "common/records/record_stream.h"

#include "absl/strings/str_cat.h"
#include "common/env/file.h"

namespace mu {
namespace {

constexpr size_t kChunkBytes = size_t{16} << 10;

}  // namespace

absl::StatusOr<RecordStream> RecordStream::Open(const std::string& path, const RecordFormat& format,
                                                int part) {
  MU_ASSIGN_OR_RETURN(const FileInfo info, GetFileInfo(path));
  if (info.directory)
    return absl::InvalidArgumentError(absl::StrCat(path, " is a directory, not a file"));
  RecordStream stream(path, &format);
  MU_ASSIGN_OR_RETURN(stream.bytes_, OpenUnpacked(path));
  while (true) {
    MU_RETURN_IF_ERROR(stream.ReadMore());
    const char* const begin = stream.text_.data();
    FoundRecord head;
    const FindResult result =
        format.FindHead(part, begin, begin + stream.text_.size(), stream.ended_, &head);
    if (result == FindResult::kMore) continue;
    stream.line_ = head.line;
    if (result == FindResult::kBroken) return stream.Broken(head);
    stream.head_ = std::string(head.text);
    stream.head_place_ = format.Place(path, head.line, 0);
    stream.at_ = static_cast<size_t>(head.next - begin);
    stream.line_ = head.next_line;
    return stream;
  }
}

absl::StatusOr<bool> RecordStream::Next(const RecordFinder& finder, absl::string_view* record) {
  while (true) {
    FoundRecord found;
    const char* const begin = text_.data();
    const FindResult result = finder.Find(begin + at_, begin + text_.size(), ended_, line_, &found);
    at_ = static_cast<size_t>(found.next - begin);
    line_ = found.next_line;
    if (result == FindResult::kEnd) return false;
    if (result == FindResult::kBroken) return Broken(found);
    if (result == FindResult::kFound) {
      record_line_ = found.line;
      record_offset_ = dropped_ + static_cast<uint64_t>(found.text.data() - begin);
      padded_.assign(found.text.data(), found.text.size());
      padded_.append(kRecordPadding, '\0');
      *record = absl::string_view(padded_).substr(0, found.text.size());
      return true;
    }
    MU_RETURN_IF_ERROR(ReadMore());
  }
}

absl::Status RecordStream::Broken(const FoundRecord& found) const {
  return absl::InvalidArgumentError(
      absl::StrCat(format_->Place(path_, found.line, dropped_ + at_), ": ", found.problem));
}

absl::Status RecordStream::ReadMore() {
  text_.erase(0, at_);
  dropped_ += at_;
  at_ = 0;
  const size_t held = text_.size();
  text_.resize(held + kChunkBytes);
  const absl::StatusOr<size_t> read = bytes_->Read(text_.data() + held, kChunkBytes);
  text_.resize(held + (read.ok() ? *read : 0));
  if (!read.ok()) return read.status();
  ended_ = *read == 0;
  return absl::OkStatus();
}

}  // namespace mu
