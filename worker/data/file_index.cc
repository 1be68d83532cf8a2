#include "worker/data/file_index.h"

#include <utility>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/base/status.h"

namespace mu {

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

FileIndexer::FileIndexer(std::string path, const RecordSyntax& syntax, uint32_t spacing)
    : syntax_(syntax), spacing_(spacing), header_seen_(!syntax.header) {
  index_.path = std::move(path);
  index_.spacing = spacing;
}

absl::Status FileIndexer::Write(absl::string_view chunk) {
  pending_.append(chunk.data(), chunk.size());
  index_.bytes += chunk.size();
  if (!begun_ && pending_.size() < kByteOrderMark.size()) return absl::OkStatus();
  SkipByteOrderMark();
  return Scan(/*last=*/false);
}

void FileIndexer::SkipByteOrderMark() {
  if (!begun_ && absl::StartsWith(pending_, kByteOrderMark)) {
    pending_.erase(0, kByteOrderMark.size());
    pending_offset_ = kByteOrderMark.size();
  }
  begun_ = true;
}

absl::Status FileIndexer::Scan(bool last) {
  const char* const begin = pending_.data();
  const char* const end = begin + pending_.size();
  const char* p = begin;
  FoundRecord found;
  FindResult result;
  while ((result = FindRecord(syntax_, p, end, last, pending_line_, &found)) ==
         FindResult::kFound) {
    p = found.next;
    pending_line_ = found.next_line;
    if (!header_seen_) {
      header_seen_ = true;
      index_.header = std::string(found.text);
      index_.header_line = found.line;
      continue;
    }
    if (index_.records % spacing_ == 0) {
      const uint64_t offset = pending_offset_ + static_cast<uint64_t>(found.text.data() - begin);
      index_.marks.push_back({.offset = offset, .line = found.line});
    }
    ++index_.records;
  }
  p = found.next;
  pending_line_ = found.next_line;
  pending_offset_ += static_cast<uint64_t>(p - begin);
  pending_.erase(0, static_cast<size_t>(p - begin));
  if (result == FindResult::kMore && pending_.size() > kMaxLine) {
    return LineTooLong(index_.path, pending_line_);
  }
  return absl::OkStatus();
}

absl::StatusOr<FileIndex> FileIndexer::Finish() {
  SkipByteOrderMark();
  MU_RETURN_IF_ERROR(Scan(/*last=*/true));
  if (!header_seen_) return HeaderMissing(index_.path);
  return std::move(index_);
}

}  // namespace mu
