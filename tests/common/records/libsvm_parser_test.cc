#include "common/records/libsvm_parser.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/records/sparse_records.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LibsvmTest : public testing::SparseTextTest {
 protected:
  explicit LibsvmTest(const std::vector<std::string>& positive = {"+1", "1"},
                      bool unlabelled = false) {
    dataset_.mutable_libsvm()->set_features(10);
    for (const std::string& text : positive) dataset_.mutable_libsvm()->add_positive(text);
    dataset_.mutable_libsvm()->set_unlabelled(unlabelled);
    MakeColumns();
  }
};

TEST_F(LibsvmTest, ReadsLabelsIdsAndValues) {
  EXPECT_EQ(Parse("+1 1:1 3:0.5 9:-2e1"), "");
  EXPECT_EQ(Parse("-1"), "");
  EXPECT_EQ(Parse("  1\t0:4   2:1 # 5:5"), "");
  EXPECT_THAT(Column<float>("label", {0, 1, 2}), ElementsAre(1, 0, 1));
  EXPECT_THAT(Column<int64_t>("features.values", {0, 1, 2}), ElementsAre(1, 3, 9, 0, 2));
  EXPECT_THAT(Column<int32_t>("features.splits", {0, 1, 2}), ElementsAre(0, 3, 3, 5));
  EXPECT_THAT(Column<float>("features.weights", {0, 1, 2}), ElementsAre(1, 0.5f, -20, 4, 1));
  // In another order, as shuffling takes them.
  EXPECT_THAT(Column<int64_t>("features.values", {2, 0}), ElementsAre(0, 2, 1, 3, 9));
  EXPECT_THAT(Column<float>("features.weights", {2, 0}), ElementsAre(4, 1, 1, 0.5f, -20));
}

class LibsvmNumberTest : public LibsvmTest {
 protected:
  LibsvmNumberTest() : LibsvmTest({}) {}
};

TEST_F(LibsvmNumberTest, WithoutPositiveTheLabelIsTheNumber) {
  EXPECT_EQ(Parse("3.5 1:1"), "");
  EXPECT_EQ(Parse("-1 1:1"), "");
  EXPECT_THAT(Column<float>("label", {0, 1}), ElementsAre(3.5f, -1));
  EXPECT_THAT(Parse("many 1:1"), HasSubstr("column label: \"many\" is not a finite number"));
}

TEST_F(LibsvmTest, ALabelThatIsNoNumberIsBad) {
  EXPECT_EQ(Parse("2.5 1:1"), "");
  EXPECT_THAT(Parse("garbage 1:1"),
              HasSubstr("column label: \"garbage\" is neither a number nor one of `positive`"));
  EXPECT_THAT(Parse("garbage"), HasSubstr("is neither a number"));
}

class LibsvmTextTest : public LibsvmTest {
 protected:
  LibsvmTextTest() : LibsvmTest({"cat", "1"}) {}
};

TEST_F(LibsvmTextTest, WhereAPositiveTextIsNoNumberOthersMayBeToo) {
  EXPECT_EQ(Parse("cat 1:1"), "");
  EXPECT_EQ(Parse("dog 1:1"), "");
  EXPECT_EQ(Parse("1 1:1"), "");
  EXPECT_THAT(Column<float>("label", {0, 1, 2}), ElementsAre(1, 0, 1));
}

TEST_F(LibsvmTest, ABadRecordLeavesNothingBehind) {
  EXPECT_EQ(Parse("+1 1:1"), "");
  EXPECT_THAT(Parse("+1 2:1 3:x"), HasSubstr("\"3:x\" has a value that is not a finite number"));
  EXPECT_EQ(Parse("-1 4:7"), "");
  EXPECT_THAT(Column<int64_t>("features.values", {0, 1}), ElementsAre(1, 4));
  EXPECT_THAT(Column<float>("features.weights", {0, 1}), ElementsAre(1, 7));
}

TEST_F(LibsvmTest, SaysWhatIsWrong) {
  EXPECT_THAT(Parse("1:1 2:1"), HasSubstr("is no label"));
  EXPECT_THAT(Parse("# nothing"), HasSubstr("is no label"));
  EXPECT_THAT(Parse("+1 3"), HasSubstr("\"3\" is not ID:VALUE"));
  EXPECT_THAT(Parse("+1 x:1"), HasSubstr("has an id that is not an integer"));
  EXPECT_THAT(Parse("+1 qid:7 1:1"), HasSubstr("names a query"));
  EXPECT_THAT(Parse("+1 10:1"), HasSubstr("has an id that is not from 0 to 9; `features` must"));
  EXPECT_THAT(Parse("+1 -1:1"), HasSubstr("not from 0 to 9"));
  EXPECT_THAT(Parse("+1 3:1 3:1"), HasSubstr("follows id 3; ids must grow"));
  EXPECT_THAT(Parse("+1 1:nan"), HasSubstr("not a finite number"));
  EXPECT_THAT(Parse("+1 1:"), HasSubstr("not a finite number"));
  EXPECT_THAT(Parse("+1 99999999999999999999:1"), HasSubstr("not an integer"));
}

TEST_F(LibsvmTest, NeedsABoundOfIds) {
  dataset_.mutable_libsvm()->set_features(0);
  EXPECT_THAT(CheckFormat(dataset_).message(), HasSubstr("must be above every id"));
}

class UnlabelledLibsvmTest : public LibsvmTest {
 protected:
  UnlabelledLibsvmTest() : LibsvmTest({"+1"}, /*unlabelled=*/true) {}
};

TEST_F(UnlabelledLibsvmTest, TheLabelMayBeThereOrNot) {
  EXPECT_EQ(Parse("1:1 3:0.5"), "");
  EXPECT_EQ(Parse("anything 2:1"), "");
  EXPECT_EQ(Parse("# nothing"), "");
  EXPECT_THAT(Column<float>("label", {0, 1, 2}), IsEmpty());
  EXPECT_THAT(Column<int64_t>("features.values", {0, 1, 2}), ElementsAre(1, 3, 2));
  EXPECT_THAT(Column<int32_t>("features.splits", {0, 1, 2}), ElementsAre(0, 2, 3, 3));
  EXPECT_THAT(Column<float>("features.weights", {0, 1, 2}), ElementsAre(1, 0.5f, 1));
  EXPECT_THAT(Parse("1:1 many"), HasSubstr("\"many\" is not ID:VALUE"));
}

}  // namespace
}  // namespace mu
