#include "common/records/dataset_files.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;

TEST(DatasetFiles, AnEmptyNameIsNamedAsSuch) {
  pb::DatasetProto dataset;
  dataset.add_files("a.csv");
  dataset.add_files("");
  std::vector<std::string> problems;
  EXPECT_THAT(ExpandDatasetFiles(&dataset, &problems),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the name of a data file is empty; name a file")));
  EXPECT_THAT(problems, ElementsAre(HasSubstr("the name of a data file is empty")));
}

TEST(DatasetFiles, FilesThatAreNamedAreNotLookedFor) {
  pb::DatasetProto dataset;
  dataset.add_files("/nowhere/a.csv");
  MU_EXPECT_OK(ExpandDatasetFiles(&dataset));
  EXPECT_THAT(dataset.files(), ElementsAre("/nowhere/a.csv"));
}

TEST(DatasetFiles, AFileOfSeveralNamesIsReadOnce) {
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("dataset_files_test"));
  const auto path = [&](const char* name) { return absl::StrCat(directory.path(), "/", name); };
  for (const char* name : {"a.csv", "b.csv"}) MU_ASSERT_OK(WriteFileAtomic(path(name), name));
  ASSERT_EQ(::symlink("b.csv", path("latest.csv").c_str()), 0);
  pb::DatasetProto dataset;
  for (const char* name : {"*.csv", "./a.csv", "b*", "../nowhere/c.csv", "../nowhere/./c.csv"})
    dataset.add_files(path(name));
  MU_EXPECT_OK(ExpandDatasetFiles(&dataset));
  EXPECT_EQ(dataset.files_size(), 7) << "programs say what they read";
  LeaveOutRepeatedFiles({dataset.mutable_files()});
  EXPECT_THAT(dataset.files(), ElementsAre(path("a.csv"), path("b.csv"), path("../nowhere/c.csv")));
}

TEST(DatasetFiles, OfListsInLockstepWhatIsRepeatedTogetherIsLeftOut) {
  pb::DatasetProto dataset;
  for (const char* file : {"/no/a", "/no/b", "/no/./a", "/no/a"}) dataset.add_files(file);
  pb::CompanionFilesProto* const labels = dataset.add_companions();
  for (const char* file : {"/no/l", "/no/l", "/no/l", "/no/m"}) labels->add_files(file);
  LeaveOutRepeatedFiles({dataset.mutable_files(), labels->mutable_files()});
  EXPECT_THAT(dataset.files(), ElementsAre("/no/a", "/no/b", "/no/a"));
  EXPECT_THAT(labels->files(), ElementsAre("/no/l", "/no/l", "/no/m"));
}

// One list names a file by two patterns, the other names each file once.
TEST(DatasetFiles, UnequalListsAreLookedAtOneByOne) {
  FileList files, labels;
  for (const char* file : {"/no/a", "/no/b", "/no/a"}) *files.Add() = file;
  for (const char* file : {"/no/l", "/no/m"}) *labels.Add() = file;
  LeaveOutRepeatedFiles({&files, &labels});
  EXPECT_THAT(files, ElementsAre("/no/a", "/no/b"));
  EXPECT_THAT(labels, ElementsAre("/no/l", "/no/m"));
}

}  // namespace
}  // namespace mu
