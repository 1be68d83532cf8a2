#include "common/records/libffm_parser.h"

#include "common/graph/dataset_schema.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/records/sparse_records.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LibffmTest : public testing::SparseTextTest {
 protected:
  explicit LibffmTest(bool unlabelled = false) {
    dataset_.mutable_libffm()->set_features(10);
    dataset_.mutable_libffm()->set_fields(3);
    dataset_.mutable_libffm()->add_positive("1");
    dataset_.mutable_libffm()->set_unlabelled(unlabelled);
    MakeColumns();
  }
};

TEST_F(LibffmTest, ReadsFieldsIdsAndValues) {
  EXPECT_EQ(Parse("1 0:1:1 2:3:0.5 0:9:-2e1"), "");
  EXPECT_EQ(Parse("0"), "");
  EXPECT_EQ(Parse(" 1\t2:0:4   1:2:1 # 0:5:5"), "");
  EXPECT_THAT(Column<float>("label", {0, 1, 2}), ElementsAre(1, 0, 1));
  EXPECT_THAT(Column<int64_t>("field_0.values", {0, 1, 2}), ElementsAre(1, 9));
  EXPECT_THAT(Column<int32_t>("field_0.splits", {0, 1, 2}), ElementsAre(0, 2, 2, 2));
  EXPECT_THAT(Column<float>("field_0.weights", {0, 1, 2}), ElementsAre(1, -20));
  EXPECT_THAT(Column<int64_t>("field_1.values", {0, 1, 2}), ElementsAre(2));
  EXPECT_THAT(Column<int32_t>("field_1.splits", {0, 1, 2}), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(Column<int64_t>("field_2.values", {2, 0}), ElementsAre(0, 3));
  EXPECT_THAT(Column<float>("field_2.weights", {2, 0}), ElementsAre(4, 0.5f));
}

TEST_F(LibffmTest, ABadRecordLeavesNothingBehind) {
  EXPECT_EQ(Parse("1 0:1:1"), "");
  EXPECT_THAT(Parse("1 0:2:1 1:3:x"),
              HasSubstr("column field_1: \"1:3:x\" has a value that is not a finite number"));
  EXPECT_EQ(Parse("0 0:4:7"), "");
  EXPECT_THAT(Column<int64_t>("field_0.values", {0, 1}), ElementsAre(1, 4));
}

TEST_F(LibffmTest, SaysWhatIsWrong) {
  EXPECT_THAT(Parse("0:1:1"), HasSubstr("is no label; a line is LABEL FIELD:ID:VALUE"));
  EXPECT_THAT(Parse("1 3"), HasSubstr("\"3\" is not FIELD:ID:VALUE"));
  EXPECT_THAT(Parse("1 3:1"), HasSubstr("\"3:1\" is not FIELD:ID:VALUE"));
  EXPECT_THAT(Parse("1 x:1:1"), HasSubstr("has a field that is not an integer"));
  EXPECT_THAT(Parse("1 3:1:1"),
              HasSubstr("has a field that is not from 0 to 2; `fields` must be above every field"));
  EXPECT_THAT(Parse("1 -1:1:1"), HasSubstr("not from 0 to 2"));
  EXPECT_THAT(Parse("1 1:x:1"), HasSubstr("has an id that is not an integer"));
  EXPECT_THAT(Parse("1 1:10:1"), HasSubstr("not from 0 to 9; `features` must be above"));
  EXPECT_THAT(Parse("1 1:-1:1"), HasSubstr("not from 0 to 9"));
  EXPECT_THAT(Parse("1 1:1:"), HasSubstr("not a finite number"));
  EXPECT_THAT(Parse("1 1:1:1:1"), HasSubstr("not a finite number"));
}

TEST_F(LibffmTest, NeedsBounds) {
  pb::LibffmProto* const libffm = dataset_.mutable_libffm();
  libffm->set_features(0);
  EXPECT_THAT(CheckFormat(dataset_).message(), HasSubstr("features is 0, but must be above"));
  libffm->set_features(10);
  for (const int64_t fields : {-1, 0, 10'001}) {
    libffm->set_fields(fields);
    EXPECT_THAT(CheckFormat(dataset_).message(), HasSubstr("must be above every field")) << fields;
  }
}

class UnlabelledLibffmTest : public LibffmTest {
 protected:
  UnlabelledLibffmTest() : LibffmTest(/*unlabelled=*/true) {}
};

TEST_F(UnlabelledLibffmTest, TheLabelMayBeThereOrNot) {
  EXPECT_EQ(Parse("0:1:1 2:3:4"), "");
  EXPECT_EQ(Parse("anything 0:2:1"), "");
  EXPECT_EQ(Parse("# nothing"), "");
  EXPECT_THAT(Column<float>("label", {0, 1, 2}), IsEmpty());
  EXPECT_THAT(Column<int64_t>("field_0.values", {0, 1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(Column<int32_t>("field_2.splits", {0, 1, 2}), ElementsAre(0, 1, 1, 1));
}

}  // namespace
}  // namespace mu
