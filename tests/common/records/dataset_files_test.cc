#include "common/records/dataset_files.h"

#include <string>
#include <vector>

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

}  // namespace
}  // namespace mu
