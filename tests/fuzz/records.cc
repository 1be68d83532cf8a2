// Files of records: told apart at once and in pieces, which must find the same, and parsed.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/graph/dataset_schema.h"
#include "common/records/record_format.h"
#include "tests/fuzz/small_rows.h"
#include "tests/fuzz/structured.h"
#include "worker/data/file_index.h"

namespace mu {
namespace {

constexpr uint32_t kMostModulo = 1 << 12;
struct Found {
  bool broken = false;
  std::vector<std::string> records;
  std::vector<uint64_t> lines;
};

// A copy of its own, so that what is read behind the padding is noticed.
class Padded {
 public:
  explicit Padded(absl::string_view text)
      : size_(text.size()), bytes_(new char[text.size() + kRecordPadding]()) {
    std::memcpy(bytes_.get(), text.data(), text.size());
  }
  absl::string_view text() const { return {bytes_.get(), size_}; }

 private:
  const size_t size_;
  const std::unique_ptr<char[]> bytes_;
};

Found FindAll(const RecordFinder& finder, const FoundRecord& head, const char* end) {
  Found all;
  const char* at = head.next;
  uint64_t line = head.next_line;
  FoundRecord found;
  FindResult result;
  while ((result = finder.Find(at, end, /*last=*/true, line, &found)) == FindResult::kFound) {
    MU_CHECK(found.next > at && found.next <= end && found.next_line >= line);
    MU_CHECK(found.text.data() >= at && found.text.data() + found.text.size() <= end);
    all.records.emplace_back(found.text);
    all.lines.push_back(found.line);
    at = found.next;
    line = found.next_line;
  }
  MU_CHECK(result == FindResult::kEnd || result == FindResult::kBroken);
  all.broken = result == FindResult::kBroken;
  return all;
}

absl::StatusOr<FileIndex> Index(const fuzz::RecordsInput& input,
                                std::shared_ptr<const RecordFormat> format) {
  FileIndexer indexer("data", std::move(format), /*part=*/0, /*spacing=*/1);
  absl::string_view left = input.text();
  for (int i = 0; !left.empty(); ++i) {
    const size_t size = input.chunks().empty()
                            ? left.size()
                            : std::max<size_t>(1, input.chunks(i % input.chunks_size()));
    MU_RETURN_IF_ERROR(indexer.Write(left.substr(0, size)));
    left.remove_prefix(std::min(size, left.size()));
  }
  return indexer.Finish();
}

// In pieces the same is found as at once.
void Compare(const fuzz::RecordsInput& input, const absl::StatusOr<FileIndex>& index,
             const RecordFinder& finder, const Found& all) {
  const auto fixed = finder.fixed();
  const bool complete = !fixed.has_value() || fixed->bytes() == input.text().size();
  MU_CHECK(index.ok() == (!all.broken && complete));
  if (!index.ok()) return;
  MU_CHECK(index->bytes == input.text().size());
  MU_CHECK(index->records == all.records.size());
  MU_CHECK(index->marks.size() == index->records);
  for (size_t i = 0; i < index->marks.size(); ++i) {
    MU_CHECK(index->marks[i].line == all.lines[i]);
    MU_CHECK(index->marks[i].offset <= index->bytes);
  }
}

void Parse(const pb::DatasetProto& dataset, const RecordParser& parser, const Found& all) {
  ColumnSet columns(SchemaOf(dataset), static_cast<uint32_t>(all.records.size()));
  std::string error;
  std::vector<uint32_t> rows;
  for (const std::string& record : all.records) {
    error.clear();
    if (parser.Parse(Padded(record).text(), &columns, &error)) {
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
  if (input.dataset().records().modulo() > mu::kMostModulo) return;
  const auto format = mu::MakeRecordFormat(input.dataset());
  if (!format.ok() || !mu::fuzzing::HasSmallRows(input.dataset())) return;
  const mu::Padded text(input.text());
  const auto index = mu::Index(input, *format);
  const char* const end = text.text().data() + text.text().size();
  mu::FoundRecord head;
  const mu::FindResult result =
      (*format)->FindHead(0, text.text().data(), end, /*last=*/true, &head);
  MU_CHECK(result == mu::FindResult::kFound || result == mu::FindResult::kBroken);
  if (result == mu::FindResult::kBroken) {
    MU_CHECK(!index.ok() && !head.problem.empty());
    return;
  }
  const auto problems = (*format)->HeadProblems(0, head.text);
  const auto file = (*format)->Open(0, head.text);
  MU_CHECK(file.ok() == problems.empty());
  if (!file.ok()) {
    MU_CHECK(!index.ok());
    return;
  }
  const mu::Found all = mu::FindAll(*file->finder, head, end);
  mu::Compare(input, index, *file->finder, all);
  mu::Parse(input.dataset(), *file->parser, all);
}
