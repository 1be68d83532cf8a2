#include "worker/data/file_index.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/printable.h"
#include "common/base/status.h"
#include "common/records/file_records.h"

namespace mu {

void BlockBeginning::Add(absl::string_view bytes) {
  const size_t taken = std::min(bytes.size(), kBytes - size_);
  crc_ = ExtendCrc32c(crc_, bytes.data(), taken);
  size_ += taken;
}

FileIndex::Range FileIndex::Locate(uint64_t first, uint64_t count) const {
  MU_CHECK(count > 0 && first + count <= records);
  const uint64_t begin = first / spacing;
  const uint64_t end = (first + count + spacing - 1) / spacing;
  const uint64_t end_offset = end < marks.size() ? marks[end].offset : bytes;
  return {.offset = marks[begin].offset,
          .size = end_offset - marks[begin].offset,
          .line = marks[begin].line,
          .skip = static_cast<uint32_t>(first % spacing)};
}

FileIndexer::FileIndexer(std::string path, std::shared_ptr<const RecordFormat> format, int part,
                         uint32_t spacing)
    : format_(std::move(format)), part_(part), spacing_(spacing) {
  index_.path = std::move(path);
  index_.spacing = spacing;
}

absl::Status FileIndexer::Write(absl::string_view chunk) {
  index_.bytes += chunk.size();
  if (opened_ != nullptr && spacing_ == 0) return absl::OkStatus();
  ExtendBeginnings(chunk);
  pending_.append(chunk.data(), chunk.size());
  if (opened_ == nullptr) MU_RETURN_IF_ERROR(ReadHead(/*last=*/false));
  return opened_ == nullptr || spacing_ == 0 ? absl::OkStatus() : Scan(/*last=*/false);
}

void FileIndexer::ExtendBeginnings(absl::string_view chunk) {
  for (Begun& begun : begun_) {
    begun.beginning.Add(chunk);
    index_.beginnings[begun.mark] = begun.beginning.crc();
  }
  std::erase_if(begun_, [](const Begun& begun) { return begun.beginning.full(); });
}

absl::Status FileIndexer::Broken(const FoundRecord& found) const {
  const uint64_t offset = pending_offset_ + static_cast<uint64_t>(found.next - pending_.data());
  return absl::InvalidArgumentError(Printable(
      absl::StrCat(format_->Place(index_.path, found.line, offset), ": ", found.problem)));
}

void FileIndexer::Drop(const char* next) {
  const auto size = static_cast<size_t>(next - pending_.data());
  pending_offset_ += size;
  pending_.erase(0, size);
}

absl::Status FileIndexer::ReadHead(bool last) {
  FoundRecord head;
  const char* const begin = pending_.data();
  const FindResult result = format_->FindHead(part_, begin, begin + pending_.size(), last, &head);
  if (result == FindResult::kMore) return absl::OkStatus();
  if (result == FindResult::kBroken) {
    return absl::InvalidArgumentError(
        Printable(absl::StrCat(format_->Place(index_.path, head.line, 0), ": ", head.problem)));
  }
  absl::StatusOr<FileFormat> opened = format_->Open(part_, head.text);
  if (!opened.ok()) {
    return absl::Status(opened.status().code(),
                        Printable(absl::StrCat(format_->Place(index_.path, head.line, 0), ": ",
                                               opened.status().message())));
  }
  opened_ = std::make_shared<const FileFormat>(*std::move(opened));
  pending_line_ = head.next_line;
  Drop(head.next);
  return absl::OkStatus();
}

absl::Status FileIndexer::Scan(bool last) {
  const char* const begin = pending_.data();
  const char* const end = begin + pending_.size();
  const char* p = begin;
  FoundRecord found;
  FindResult result;
  while ((result = opened_->finder->Find(p, end, last, pending_line_, &found)) ==
         FindResult::kFound) {
    p = found.next;
    pending_line_ = found.next_line;
    if (index_.records % spacing_ == 0) {
      const uint64_t offset = pending_offset_ + static_cast<uint64_t>(found.text.data() - begin);
      BlockBeginning beginning;
      beginning.Add({found.text.data(), static_cast<size_t>(end - found.text.data())});
      if (!beginning.full()) begun_.push_back({index_.marks.size(), beginning});
      index_.marks.push_back({.offset = offset, .line = found.line});
      index_.beginnings.push_back(beginning.crc());
    }
    ++index_.records;
  }
  if (result == FindResult::kBroken) return Broken(found);
  pending_line_ = found.next_line;
  Drop(found.next);
  return absl::OkStatus();
}

absl::StatusOr<FileIndex> FileIndexer::Finish() {
  if (opened_ == nullptr) MU_RETURN_IF_ERROR(ReadHead(/*last=*/true));
  MU_CHECK(opened_ != nullptr);
  if (spacing_ > 0) MU_RETURN_IF_ERROR(Scan(/*last=*/true));
  const std::optional<FixedRecords> fixed = opened_->finder->fixed();
  if (fixed.has_value() && spacing_ > 0 && index_.bytes != fixed->bytes()) {
    return WrongSize(index_.path, *fixed, index_.bytes);
  }
  return std::move(index_);
}

absl::Status WrongSize(absl::string_view path, const FixedRecords& fixed, uint64_t bytes) {
  return WrongFileSize(path, fixed, bytes);
}

}  // namespace mu
