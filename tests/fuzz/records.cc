// Text files of records: told apart at once and in pieces, which must find the same, and parsed.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/graph/dataset_schema.h"
#include "common/records/record_parser.h"
#include "tests/fuzz/structured.h"
#include "worker/data/file_index.h"

namespace mu {
namespace {

constexpr uint32_t kMostModulo = 1 << 12;

struct Found {
  std::vector<std::string> records;
  std::vector<uint64_t> lines;
};

// `text` is followed by kRecordPadding bytes.
Found FindAll(const RecordSyntax& syntax, absl::string_view text) {
  Found all;
  const char* at = text.data();
  const char* const end = at + text.size();
  uint64_t line = 1;
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) at += kByteOrderMark.size();
  FoundRecord found;
  while (FindRecord(syntax, at, end, /*last=*/true, line, &found) == FindResult::kFound) {
    MU_CHECK(found.next > at && found.next <= end && found.next_line >= line);
    MU_CHECK(found.text.data() >= at && found.text.data() + found.text.size() <= end);
    all.records.emplace_back(found.text);
    all.lines.push_back(found.line);
    at = found.next;
    line = found.next_line;
  }
  return all;
}

void Index(const fuzz::RecordsInput& input, const RecordSyntax& syntax, const Found& all) {
  FileIndexer indexer("data", syntax, /*spacing=*/1);
  absl::string_view left = input.text();
  for (int i = 0; !left.empty(); ++i) {
    const size_t size = input.chunks().empty()
                            ? left.size()
                            : std::max<size_t>(1, input.chunks(i % input.chunks_size()));
    MU_CHECK(indexer.Write(left.substr(0, size)).ok());
    left.remove_prefix(std::min(size, left.size()));
  }
  const auto index = indexer.Finish();
  if (syntax.header && all.records.empty()) {
    MU_CHECK(!index.ok());
    return;
  }
  MU_CHECK(index.ok() && index->bytes == input.text().size());
  const size_t first = syntax.header ? 1 : 0;
  if (syntax.header) MU_CHECK(index->header == all.records[0]);
  MU_CHECK(index->records == all.records.size() - first);
  MU_CHECK(index->marks.size() == index->records);
  for (size_t i = 0; i < index->marks.size(); ++i) {
    MU_CHECK(index->marks[i].line == all.lines[first + i]);
    MU_CHECK(index->marks[i].offset <= index->bytes);
  }
}

void Parse(const pb::DatasetProto& dataset, const RecordSyntax& syntax, const Found& all) {
  const std::string header = syntax.header && !all.records.empty() ? all.records[0] : "";
  const auto problems = HeaderProblems(dataset, header);
  const auto parser = MakeRecordParser(dataset, header);
  MU_CHECK(parser.ok() == problems.empty());
  if (!parser.ok()) return;
  ColumnSet columns(SchemaOf(dataset), static_cast<uint32_t>(all.records.size()));
  std::string error;
  std::vector<uint32_t> rows;
  for (size_t i = syntax.header ? 1 : 0; i < all.records.size(); ++i) {
    // Of its own, so that what is read behind the padding is noticed.
    const std::string& record = all.records[i];
    const std::unique_ptr<char[]> copy(new char[record.size() + kRecordPadding]());
    std::memcpy(copy.get(), record.data(), record.size());
    if ((*parser)->Parse({copy.get(), record.size()}, &columns, &error)) {
      rows.push_back(columns.rows());
      columns.CommitRow();
    } else {
      MU_CHECK(!error.empty());
      columns.DropRow();
    }
  }
  std::reverse(rows.begin(), rows.end());
  const Batch batch = columns.Gather(rows);
  MU_CHECK(batch.records == rows.size());
}

}  // namespace
}  // namespace mu

MUSTER_FUZZ_MESSAGE(muster::fuzz::RecordsInput) {
  if (!mu::CheckFormat(input.dataset()).ok()) return;
  if (input.dataset().records().modulo() > mu::kMostModulo) return;
  const mu::RecordSyntax syntax = mu::SyntaxOf(input.dataset());
  const size_t size = input.text().size();
  const std::unique_ptr<char[]> text(new char[size + mu::kRecordPadding]());
  std::memcpy(text.get(), input.text().data(), size);
  const mu::Found all = mu::FindAll(syntax, {text.get(), size});
  mu::Index(input, syntax, all);
  mu::Parse(input.dataset(), syntax, all);
}
