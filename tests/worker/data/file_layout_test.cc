// Leases that say where their blocks are: a reader that is new reads those and looks at nothing
// else.
#include "common/base/status.h"
#include "common/env/host_name.h"
#include "common/records/record_scanner.h"
#include "tests/worker/data/data_test_util.h"
#include "worker/data/dataset_reader.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FileLayoutTest : public DataTest {
 protected:
  // A header, and texts that hold line ends and quotes, in lines of uneven length with blank ones
  // between.
  static std::string UnevenText() {
    std::string text = "note,id\n";
    for (int i = 0; i < kRecords; ++i) {
      absl::StrAppend(&text, i % 3 == 0 ? "\"a\nb\"\"c\"" : std::string(i % 11, 'x'), ",", i,
                      i % 5 == 0 ? "\n\n" : "\n");
    }
    return text;
  }
  pb::DatasetProto Uneven(absl::string_view ending) {
    pb::DatasetProto dataset;
    dataset.set_batch_size(kRecords);
    dataset.set_block_records(7);
    dataset.mutable_csv()->set_header(true);
    AddColumn(&dataset, "id", pb::CsvColumnProto::ID);
    dataset.add_files(Write(absl::StrCat("uneven", ending), UnevenText()));
    return dataset;
  }
  static std::vector<int64_t> Ids(const LeaseData& data) {
    return Values<int64_t>(data.MakeBatch(0), "id");
  }

  // What a reader that has never seen the file says of this block.
  absl::Status ReadAnew(const pb::DatasetProto& dataset, const pb::BlockProto& block) {
    return Reader(dataset)->Read(LeaseOf({block})).status();
  }
  // As it is of a lease that an earlier version has made.
  static pb::BlockProto Earlier(pb::BlockProto block) {
    block.clear_file_bytes();
    block.clear_beginning();
    return block;
  }

  static constexpr int kRecords = 100;
};

TEST_F(FileLayoutTest, BlocksAreReadFromTheirPlaces) {
  for (const char* ending : {".csv", ".csv.gz", ".csv.zst"}) {
    SCOPED_TRACE(ending);
    const pb::DatasetProto dataset = Uneven(ending);
    MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, Reader(dataset)->Layout(0));
    EXPECT_EQ(layout.records(), static_cast<uint64_t>(kRecords));
    ASSERT_EQ(layout.offsets_size(), (kRecords + 6) / 7);
    ASSERT_EQ(layout.lines_size(), layout.offsets_size());
    ASSERT_EQ(layout.beginnings_size(), layout.offsets_size());
    const auto reader = Reader(dataset);  // which knows nothing of the file
    const std::vector<pb::BlockProto> blocks = BlocksOf(layout, 7);
    for (size_t i = 0; i < blocks.size(); ++i) {
      MU_ASSERT_OK_AND_ASSIGN(const auto data, reader->Read(LeaseOf({blocks[i]})));
      std::vector<int64_t> expected;
      for (uint32_t k = 0; k < blocks[i].count(); ++k)
        expected.push_back(static_cast<int64_t>(7 * i + k));
      EXPECT_EQ(Ids(*data), expected);
    }
  }
}

TEST_F(FileLayoutTest, TheRestOfTheFileIsNotLookedAt) {
  // Looking through this file fails: a line is longer than any text has.
  pb::DatasetProto dataset;
  dataset.set_batch_size(10);
  dataset.set_block_records(2);
  AddColumn(&dataset, "id", pb::CsvColumnProto::ID, 0);
  const std::string begin = "1\n2\n";
  dataset.add_files(
      Write("long.csv", begin + std::string(kMaxLine + (size_t{4} << 20), 'x') + "\n"));
  const auto reader = Reader(dataset);
  EXPECT_THAT(reader->Layout(0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("long.csv:3")));
  pb::BlockProto block = Block(0, 0, 2);
  EXPECT_THAT(reader->Read(LeaseOf({block})).status(), HasCode(absl::StatusCode::kInvalidArgument));
  block.set_bytes(begin.size());
  block.set_line(1);
  MU_ASSERT_OK_AND_ASSIGN(const auto data, reader->Read(LeaseOf({block})));
  EXPECT_EQ(Ids(*data), (std::vector<int64_t>{1, 2}));
}

TEST_F(FileLayoutTest, LinesOfBadRecordsAreThoseOfTheFile) {
  const pb::DatasetProto good = Uneven(".csv");
  MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, Reader(good)->Layout(0));
  pb::DatasetProto dataset = good;
  dataset.mutable_csv()->mutable_columns(0)->set_field("note");  // which holds no numbers
  for (const pb::BlockProto& block : BlocksOf(layout, 7)) {
    EXPECT_THAT(Reader(dataset)->Read(LeaseOf({block})).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("uneven.csv:", block.line(), ":"))));
  }
}

TEST_F(FileLayoutTest, PlacesThatAreNotInTheFileAreRefused) {
  const pb::DatasetProto dataset = Uneven(".csv");
  MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, Reader(dataset)->Layout(0));
  const auto reader = Reader(dataset);
  const pb::BlockProto good = BlocksOf(layout, 7)[3];
  pb::BlockProto beyond = good, large = good, far = good, many = good, more = good;
  beyond.set_offset(layout.bytes());
  large.set_bytes(~uint64_t{0});
  far.set_offset(~uint64_t{0} - 3);
  more.set_count(8);
  many.set_count(~uint32_t{0});
  for (const pb::BlockProto& block : {beyond, large, far, more}) {
    EXPECT_THAT(
        reader->Read(LeaseOf({block})).status(),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("uneven.csv has changed")));
  }
  EXPECT_THAT(reader->Read(LeaseOf({many})).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("claims")));
  MU_EXPECT_OK(reader->Read(LeaseOf({good})).status());
}

TEST_F(FileLayoutTest, AFileThatChangedIsNoticedByWhoNeverLookedThroughIt) {
  const pb::DatasetProto dataset = Uneven(".csv");
  MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, Reader(dataset)->Layout(0));
  const auto reader = Reader(dataset);
  const std::vector<pb::BlockProto> blocks = BlocksOf(layout, 7);
  MU_ASSERT_OK(reader->Read(LeaseOf({blocks[0]})).status());
  Write("uneven.csv", "note,id\nx,1\n");
  EXPECT_THAT(reader->Read(LeaseOf({blocks[0]})).status(),
              HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Reader(dataset)->Read(LeaseOf({blocks[5]})).status(),
              HasCode(absl::StatusCode::kFailedPrecondition));
}

// A worker that is started again after the file has got a line in front.
TEST_F(FileLayoutTest, AFileOfAnotherLengthIsNoticedByANewReader) {
  for (const char* ending : {".csv", ".csv.gz", ".csv.zst"}) {
    SCOPED_TRACE(ending);
    pb::DatasetProto dataset = Uneven(ending);
    MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, Reader(dataset)->Layout(0));
    std::string text = UnevenText();
    text.insert(text.find('\n') + 1, "y,7\n");
    const std::string name = absl::StrCat("longer", ending);
    dataset.set_files(0, Write(name, text));
    for (const pb::BlockProto& block : BlocksOf(layout, 7)) {
      const absl::Status status = ReadAnew(dataset, block);
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                   AllOf(HasSubstr(name + " has changed"),
                                         HasSubstr(HostName() + " has another copy"))));
      EXPECT_EQ(KindOf(status), pb::ERROR_USER);
    }
  }
}

// Good records in the same places, of which one is another at the beginning of a block.
TEST_F(FileLayoutTest, OtherBytesOfTheSameLengthAreNoticedByANewReader) {
  for (const char* ending : {".csv", ".csv.gz", ".csv.zst"}) {
    SCOPED_TRACE(ending);
    const pb::DatasetProto dataset = Uneven(ending);
    MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, Reader(dataset)->Layout(0));
    const std::vector<pb::BlockProto> blocks = BlocksOf(layout, 7);
    for (size_t i = 0; i < blocks.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("block ", i));
      MU_EXPECT_OK(ReadAnew(dataset, blocks[i]));
      std::string text = UnevenText();
      char& digit = text[text.find(',', blocks[i].offset()) + 1];
      digit = digit == '9' ? '1' : static_cast<char>(digit + 1);
      const std::string name = absl::StrCat("other", i, ending);
      pb::DatasetProto other = dataset;
      other.set_files(0, Write(name, text));
      EXPECT_THAT(ReadAnew(other, blocks[i]), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                       HasSubstr(name + " has changed")));
      MU_EXPECT_OK(ReadAnew(other, Earlier(blocks[i])));
      for (size_t behind = i + 1; behind < blocks.size(); ++behind)
        MU_EXPECT_OK(ReadAnew(other, blocks[behind]));
    }
  }
}

// The bytes that are compared go on in the blocks behind.
TEST_F(FileLayoutTest, BeginningsOfShortBlocks) {
  std::string text;
  for (int i = 10; i < 60; ++i) absl::StrAppend(&text, i, "\n");
  pb::DatasetProto dataset;
  dataset.set_batch_size(10);
  dataset.set_block_records(1);
  AddColumn(&dataset, "id", pb::CsvColumnProto::ID, 0);
  dataset.add_files(Write("short.csv", text));
  MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, Reader(dataset)->Layout(0));
  const std::vector<pb::BlockProto> blocks = BlocksOf(layout, 1);
  ASSERT_EQ(blocks.size(), 50u);
  MU_EXPECT_OK(Reader(dataset)->Read(LeaseOf(blocks)).status());
  text[90] = '9';  // of record 30
  Write("short.csv", text);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const bool reaches = 3 * i <= 90 && 90 < 3 * i + 64;
    EXPECT_EQ(ReadAnew(dataset, blocks[i]).code(),
              reaches ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kOk)
        << "block " << i;
  }
}

TEST_F(FileLayoutTest, WithoutBlocksThereAreNoBeginnings) {
  pb::DatasetProto dataset = Uneven(".csv");
  dataset.set_block_records(0);
  MU_ASSERT_OK_AND_ASSIGN(const pb::FileLayoutProto layout, Reader(dataset)->Layout(0));
  EXPECT_EQ(layout.offsets_size(), 0);
  EXPECT_EQ(layout.beginnings_size(), 0);
}

}  // namespace
}  // namespace mu
