// Leases over more files than a process may have descriptors.
#include "worker/data/open_files.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "common/records/text_format.h"
#include "tests/worker/data/data_test_util.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

// Leaves so many descriptors to this process for its life.
class DescriptorsLeft {
 public:
  explicit DescriptorsLeft(int left) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    int end = 0;
    for (; left > 0; ++end) {
      if (fcntl(end, F_GETFD) < 0) --left;
    }
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(end);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~DescriptorsLeft() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  DescriptorsLeft(const DescriptorsLeft&) = delete;
  DescriptorsLeft& operator=(const DescriptorsLeft&) = delete;

 private:
  rlimit before_ = {};
};

class OpenFilesTest : public DataTest {
 protected:
  static constexpr uint32_t kMost = OpenFiles::kMostDescriptors;

  FileAccess Access() { return {cache_.get(), &inline_files_}; }
  // Files of one line, their number, of which the head was read.
  OpenFile* Known(uint32_t number, OpenFiles* files) {
    OpenFile& file = files->At(number);
    absl::StatusOr<DataFile> looked =
        DataFile::Look(Write(absl::StrCat(number, ".txt"), absl::StrCat(number, "\n")), format_,
                       /*part=*/0, /*spacing=*/0, Access(), nullptr);
    EXPECT_THAT(looked, testing::IsOk());
    if (looked.ok()) file.known.parts.push_back(*std::move(looked));
    return &file;
  }
  static std::string Contents(const OpenFile& file) {
    std::string contents(file.size, '\0');
    MU_EXPECT_OK(PreadAll(file.fds[0].get(), contents.data(), file.size, 0, file.known.path()));
    return contents;
  }

  const std::shared_ptr<const RecordFormat> format_ =
      std::make_shared<TextFormat>(RecordSyntax(), nullptr);
  const pb::DatasetProto no_inline_files_;
  InlineFiles inline_files_{no_inline_files_};
};

// Each file twice, so that those of the beginning are opened again.
TEST_F(OpenFilesTest, ALeaseMayHaveMoreFilesThanMayBeOpen) {
  constexpr uint32_t kFiles = 200;
  for (const char* ending : {".csv", ".csv.gz"}) {
    SCOPED_TRACE(ending);
    pb::DatasetProto dataset;
    dataset.set_batch_size(2 * kFiles);
    dataset.set_block_records(1);
    AddColumn(&dataset, "id", pb::CsvColumnProto::ID, 0);
    std::vector<pb::BlockProto> blocks;
    std::vector<int64_t> expected;
    for (uint32_t file = 0; file < kFiles; ++file) {
      dataset.add_files(Write(absl::StrCat("f", file, ending), absl::StrCat(file, "\n1000\n")));
      blocks.push_back(Block(file, 0, 1));
      expected.push_back(file);
    }
    for (uint32_t file = 0; file < kFiles; ++file) {
      blocks.push_back(Block(file, 1, 1));
      expected.push_back(1000);
    }
    const DescriptorsLeft left(100);
    MU_ASSERT_OK_AND_ASSIGN(const auto data, Reader(dataset)->Read(LeaseOf(blocks)));
    EXPECT_EQ(Values<int64_t>(data->MakeBatch(0), "id"), expected);
  }
}

TEST_F(OpenFilesTest, FewFilesStayOpen) {
  OpenFiles files(Access());
  std::vector<int> fds;
  for (uint32_t i = 0; i < kMost; ++i) {
    OpenFile* const file = Known(i, &files);
    MU_ASSERT_OK(files.Open(file));
    fds.push_back(file->fds[0].get());
  }
  for (uint32_t i = kMost; i-- > 0;) {
    MU_ASSERT_OK(files.Open(&files.At(i)));
    EXPECT_EQ(files.At(i).fds[0].get(), fds[i]) << i;
  }
}

TEST_F(OpenFilesTest, ThoseUsedLastStayOpen) {
  OpenFiles files(Access());
  for (uint32_t i = 0; i < kMost; ++i) MU_ASSERT_OK(files.Open(Known(i, &files)));
  MU_ASSERT_OK(files.Open(&files.At(0)));
  for (uint32_t i = kMost; i < kMost + 10; ++i) MU_ASSERT_OK(files.Open(Known(i, &files)));
  size_t open = 0;
  for (uint32_t i = 0; i < kMost + 10; ++i) {
    EXPECT_EQ(files.At(i).fds.empty(), i >= 1 && i <= 10) << i;
    open += files.At(i).fds.size();
  }
  EXPECT_EQ(open, kMost);
  for (uint32_t i = 0; i < kMost + 10; ++i) {
    MU_ASSERT_OK(files.Open(&files.At(i)));
    EXPECT_EQ(Contents(files.At(i)), absl::StrCat(i, "\n"));
  }
}

// Two files of one record each, of which all descriptors would be too many.
TEST_F(OpenFilesTest, FilesReadInLockstepAreOpenTogether) {
  OpenFiles files(Access());
  for (const uint32_t number : {0, 1}) {
    OpenFile* const file = Known(number, &files);
    for (uint32_t part = 1; part < kMost; ++part) file->known.parts.push_back(file->known.parts[0]);
    MU_ASSERT_OK(files.Open(file));
    EXPECT_EQ(file->fds.size(), kMost);
  }
  EXPECT_TRUE(files.At(0).fds.empty());
  MU_ASSERT_OK(files.Open(&files.At(0)));
  EXPECT_TRUE(files.At(1).fds.empty());
}

TEST_F(OpenFilesTest, AChangeIsNoticedWhenAFileIsOpenedAgain) {
  OpenFiles files(Access());
  for (uint32_t i = 0; i < kMost + 1; ++i) MU_ASSERT_OK(files.Open(Known(i, &files)));
  ASSERT_TRUE(files.At(0).fds.empty());
  Write("0.txt", "another\n");
  Write("9.txt", "another\n");
  MU_EXPECT_OK(files.Open(&files.At(9)));
  EXPECT_EQ(Contents(files.At(9)), "9\n") << "it has been open all the time";
  EXPECT_THAT(files.Open(&files.At(0)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("0.txt has changed")));
  EXPECT_TRUE(files.At(0).fds.empty());
  MU_EXPECT_OK(files.Open(&files.At(1))) << "the others are as they were";
}

}  // namespace
}  // namespace mu
