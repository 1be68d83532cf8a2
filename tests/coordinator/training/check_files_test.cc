#include "coordinator/training/check_files.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CheckFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TempDirectory::Create("check_files");
    ASSERT_THAT(directory, testing::IsOk());
    directory_ = std::make_unique<TempDirectory>(*std::move(directory));
    pb::CsvColumnProto* column = dataset_.mutable_csv()->add_columns();
    column->set_name("x");
    column->set_kind(pb::CsvColumnProto::NUMBER);
  }
  void Add(const std::string& name, const std::string& contents) {
    const std::string path = JoinPath(directory_->path(), name);
    MU_ASSERT_OK(WriteFileAtomic(path, contents));
    dataset_.add_files(path);
  }
  std::unique_ptr<TempDirectory> directory_;
  pb::DatasetProto dataset_;  // one number in a line
};

TEST_F(CheckFilesTest, TheFirstFilesWellAndOfAllTheFirstRecord) {
  for (int i = 0; i < 10; ++i) Add(absl::StrCat("late-", i), "1\nbad\n");
  EXPECT_THAT(CheckFiles(dataset_, false), SizeIs(4));
  Add("last", "bad\n");
  EXPECT_THAT(CheckFiles(dataset_, false).back(), HasSubstr("last:1: column x"));
}

TEST_F(CheckFilesTest, ManyProblemsEnd) {
  for (int i = 0; i < 100; ++i) Add(absl::StrCat(i), "bad\n");
  const std::vector<std::string> problems = CheckFiles(dataset_, false);
  EXPECT_THAT(problems, SizeIs(21));
  EXPECT_THAT(problems.back(), HasSubstr("there may be more"));
}

TEST_F(CheckFilesTest, OneOfManyMayBeEmptyButNotAll) {
  Add("empty", "\n\n");
  EXPECT_THAT(CheckFiles(dataset_, false),
              ElementsAre("there are no records in " + dataset_.files(0)));
  Add("full", "1\n");
  EXPECT_THAT(CheckFiles(dataset_, false), IsEmpty());
}

TEST_F(CheckFilesTest, FilesOfOtherMachinesAreLeftToThem) {
  dataset_.add_files("/another/machine/file");
  EXPECT_THAT(CheckFiles(dataset_, false), ElementsAre(HasSubstr("/another/machine/file")));
  EXPECT_THAT(CheckFiles(dataset_, true), IsEmpty());
  dataset_.add_files("/another/machine/*");
  EXPECT_THAT(CheckFiles(dataset_, true), ElementsAre(HasSubstr("\"/another/machine/*\"")));
}

TEST_F(CheckFilesTest, AFormatThatMakesNoSense) {
  dataset_.mutable_csv()->set_delimiter("ab");
  EXPECT_THAT(CheckFiles(dataset_, false), ElementsAre(HasSubstr("delimiter")));
}

}  // namespace
}  // namespace mu
