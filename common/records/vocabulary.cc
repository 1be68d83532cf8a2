#include "common/records/vocabulary.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/printable.h"
#include "common/base/status.h"
#include "common/env/compression.h"
#include "common/graph/dataset_schema.h"
#include "common/records/record_scanner.h"

namespace mu {
namespace {

absl::StatusOr<std::string> ReadUnpacked(const std::string& path) {
  constexpr size_t kChunk = size_t{256} << 10;
  MU_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, OpenUnpacked(path));
  std::string text;
  while (true) {
    const size_t held = text.size();
    if (held > kMaxVocabularyBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": the vocabulary has more than ", kMaxVocabularyBytes,
          " bytes; leave rare texts out (make-vocab --min_count), or hash the column"));
    }
    text.resize(held + kChunk);
    MU_ASSIGN_OR_RETURN(const size_t n, stream->Read(text.data() + held, kChunk));
    text.resize(held + n);
    if (n == 0) return text;
  }
}

absl::StatusOr<std::string> ReadVocabulary(const std::string& path) {
  MU_ASSIGN_OR_RETURN(const std::string text, ReadUnpacked(path));
  absl::string_view rest = text;
  if (rest.substr(0, kByteOrderMark.size()) == kByteOrderMark)
    rest.remove_prefix(kByteOrderMark.size());
  absl::flat_hash_set<absl::string_view> seen;
  std::string lines;
  for (int line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    absl::string_view entry = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!entry.empty() && entry.back() == '\r') entry.remove_suffix(1);
    if (entry.empty() || !seen.insert(entry).second) {
      return absl::InvalidArgumentError(Printable(absl::StrCat(
          path, ":", line, ": ",
          entry.empty() ? "the line is empty" : absl::StrCat("\"", entry, "\" stands there twice"),
          "; a vocabulary has one text a line, each once")));
    }
    absl::StrAppend(&lines, entry, "\n");
  }
  if (lines.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": it has no texts"));
  return lines;
}

}  // namespace

Vocabulary::Vocabulary(std::string lines) : lines_(std::move(lines)) {
  absl::string_view rest = lines_;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const auto id = static_cast<int64_t>(ids_.size());
    ids_.emplace(rest.substr(0, end), id);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

absl::Status ReadVocabularies(pb::DatasetProto* dataset) {
  FieldColumnList* const columns = MutableFieldColumnsOf(dataset);
  if (columns == nullptr) return absl::OkStatus();
  uint64_t bytes = 0;
  for (pb::CsvColumnProto& column : *columns) {
    if (column.kind() == pb::CsvColumnProto::VOCABULARY && column.vocabulary().empty() &&
        !column.vocabulary_file().empty()) {
      absl::StatusOr<std::string> lines = ReadVocabulary(column.vocabulary_file());
      if (!lines.ok())
        return Annotate(lines.status(), absl::StrCat("vocabulary of column ", column.name()));
      column.set_vocabulary(*std::move(lines));
    }
    bytes += column.vocabulary().size();
  }
  if (bytes > kMaxVocabularyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the vocabularies of the dataset have ", bytes,
                                                   " bytes together, the limit is ",
                                                   kMaxVocabularyBytes));
  }
  return absl::OkStatus();
}

}  // namespace mu
