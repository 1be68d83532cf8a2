#include "worker/data/file_index.h"

#include <algorithm>
#include <sstream>

#include "common/base/crc32c.h"
#include "common/base/hash.h"
#include "common/records/sparse_text.h"
#include "common/records/text_format.h"
#include "tests/common/records/found_records.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::Found;
using ::mu::testing::kCsv;
using ::mu::testing::kLines;
using ::mu::testing::kTrimmed;
using ::mu::testing::Records;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

std::shared_ptr<const RecordFormat> Lines(const RecordSyntax& syntax) {
  return std::make_shared<TextFormat>(syntax, nullptr);
}

// In chunks of any size, and from any block on, `expected` is found.
void CheckChunksAndBlocks(const RecordSyntax& syntax, const std::string& text,
                          const std::vector<Found>& expected, SplitMix* random) {
  const uint32_t spacing = 1 + static_cast<uint32_t>(random->Below(3));
  FileIndexer indexer("F", Lines(syntax), /*part=*/0, spacing);
  for (size_t begin = 0; begin < text.size();) {
    const size_t size = std::min<size_t>(text.size() - begin, 1 + random->Below(9));
    MU_ASSERT_OK(indexer.Write(absl::string_view(text).substr(begin, size)));
    begin += size;
  }
  MU_ASSERT_OK_AND_ASSIGN(const FileIndex index, indexer.Finish());
  ASSERT_EQ(index.records, expected.size());
  ASSERT_EQ(index.bytes, text.size());
  std::vector<uint32_t> beginnings;
  for (const FileIndex::Mark& mark : index.marks) {
    const std::string beginning = text.substr(mark.offset, 64);
    beginnings.push_back(Crc32c(beginning.data(), beginning.size()));
  }
  ASSERT_EQ(index.beginnings, beginnings);
  for (uint64_t first = 0; first < index.records; ++first) {
    for (uint64_t count = 1; first + count <= index.records; ++count) {
      const FileIndex::Range range = index.Locate(first, count);
      const std::vector<Found> part = Records(syntax, text.substr(range.offset, range.size));
      ASSERT_GE(part.size(), range.skip + count);
      for (uint64_t i = 0; i < count; ++i) {
        const Found& found = part[range.skip + i];
        ASSERT_EQ(found.text, expected[first + i].text);
        ASSERT_EQ(found.line + range.line - 1, expected[first + i].line);
      }
    }
  }
}

TEST(FileIndexTest, ChunksAndBlocksDoNotMatter) {
  constexpr absl::string_view kPieces[] = {"a",    ",",  "\"", "\n",    "\r\n",
                                           "\"\"", "bc", " ",  "\",\"", "\n\n"};
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    SplitMix random(seed);
    std::string text;
    for (uint64_t i = random.Below(60); i > 0; --i) text += std::string(kPieces[random.Below(10)]);
    const RecordSyntax syntax = seed % 2 == 0 ? kCsv : kTrimmed;
    CheckChunksAndBlocks(syntax, text, Records(syntax, text), &random);
  }
}

// The lines that have a word before their comment, as a script would take them.
std::vector<Found> LinesWithWords(const std::string& text) {
  std::vector<Found> all;
  std::istringstream in(text);
  std::string line;
  for (uint64_t number = 1; std::getline(in, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.substr(0, line.find('#')).find_first_not_of(" \t") != std::string::npos)
      all.push_back({line, number});
  }
  return all;
}

TEST(FileIndexTest, CommentsAreNowhereRecords) {
  constexpr absl::string_view kPieces[] = {"1",    "2:1", " ",     "\t",  "#",
                                           "\r\n", "\n",  "\n# c", " \n", "\n\n"};
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    SplitMix random(seed);
    std::string text;
    for (uint64_t i = random.Below(60); i > 0; --i) text += std::string(kPieces[random.Below(10)]);
    CheckChunksAndBlocks(kSparseSyntax, text, LinesWithWords(text), &random);
  }
}

TEST(FileIndexTest, SkipsAByteOrderMarkAndKeepsTheHeader) {
  const std::string text =
      "\xEF\xBB\xBF"
      "a,b\n1,2\n3,4";
  for (size_t step : {1, 2, 100}) {
    FileIndexer indexer("F", Lines({.delimiter = ',', .quote = '"', .header = true}), 0, 1);
    for (size_t begin = 0; begin < text.size(); begin += step) {
      MU_ASSERT_OK(indexer.Write(absl::string_view(text).substr(begin, step)));
    }
    MU_ASSERT_OK_AND_ASSIGN(const FileIndex index, indexer.Finish());
    EXPECT_EQ(index.records, 2u);
    EXPECT_EQ(index.marks[0].offset, 7u);
    EXPECT_EQ(index.marks[0].line, 2u);
  }
}

TEST(FileIndexTest, RefusesWhatIsNoText) {
  FileIndexer indexer("DIR/F", Lines(kLines), 0, 1);
  MU_ASSERT_OK(indexer.Write("a\n"));
  EXPECT_THAT(indexer.Write(std::string(kMaxLine + 1, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("DIR/F:2: ")));
}

TEST(FileIndexTest, SkipsLinesBeforeTheHeader) {
  const std::string text = "\xEF\xBB\xBF|1x3 \"Cross\n\na,b\n1,2\n";
  const RecordSyntax syntax = {.delimiter = ',', .quote = '"', .header = true, .skip_lines = 1};
  for (size_t step : {1, 2, 100}) {
    FileIndexer indexer("F", Lines(syntax), 0, 1);
    for (size_t begin = 0; begin < text.size(); begin += step)
      MU_ASSERT_OK(indexer.Write(absl::string_view(text).substr(begin, step)));
    MU_ASSERT_OK_AND_ASSIGN(const FileIndex index, indexer.Finish());
    ASSERT_EQ(index.records, 1u);
    EXPECT_EQ(index.marks[0].line, 4u);
    EXPECT_EQ(text.substr(index.marks[0].offset), "1,2\n");
  }
  FileIndexer all("F", Lines({.skip_lines = 5}), 0, 1);
  MU_ASSERT_OK(all.Write("a\nb"));
  MU_ASSERT_OK_AND_ASSIGN(const FileIndex index, all.Finish());
  EXPECT_EQ(index.records, 0u);
}

TEST(FileIndexTest, NeedsAHeader) {
  FileIndexer indexer("F", Lines({.header = true}), 0, 1);
  EXPECT_THAT(indexer.Finish().status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("F:1: ")));
}

}  // namespace
}  // namespace mu
