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

TEST_F(CheckFilesTest, SkippedRecordsAreAProblemIfNoFileHasAGoodOne) {
  dataset_.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  Add("stray", "a comment\n");
  Add("another", "bad\n");
  EXPECT_THAT(CheckFiles(dataset_, false),
              ElementsAre(HasSubstr("stray: none of its 1 records is good; is this the right")));
  Add("good", "bad\n1\n");
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

class FieldsTest : public CheckFilesTest {
 protected:
  std::vector<std::string> Check(const CheckedLabels& labels = {}) {
    notes_.clear();
    return CheckFiles(dataset_, false, labels, &notes_);
  }
  pb::CsvColumnProto* AddField(const std::string& name, const std::string& field) {
    pb::CsvColumnProto* const column = dataset_.mutable_jsonl()->add_columns();
    column->set_name(name);
    column->set_field(field);
    column->set_kind(pb::CsvColumnProto::NUMBER);
    return column;
  }
  std::vector<std::string> notes_;
};

TEST_F(FieldsTest, AFieldThatNoRecordHas) {
  AddField("x", "xx");
  AddField("y", "stars");
  AddField("z", "");
  Add("file", "{\"x\": 1, \"z\": null}\n{\"y\": 2}\n");
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(
      notes_,
      ElementsAre("column x: none of the first 2 records has a field \"xx\"; they have x, y, z",
                  "column y: none of the first 2 records has a field \"stars\"; they have x, y, z",
                  "column z: it is missing in all of the first 2 records; is this the right "
                  "field?"));
  EXPECT_THAT(Check({.required = {"y"}}),
              ElementsAre("column y, the model's label: none of the first 2 records has a field "
                          "\"stars\"; they have x, y, z; or write missing_value (of an id "
                          "missing_id), if all are meant to be missing here"));
  EXPECT_THAT(notes_, SizeIs(2));
  // One value, in any of the files, is enough.
  Add("another", "{\"xx\": 1}\n{\"stars\": 1, \"z\": 0}\n");
  EXPECT_THAT(Check({.required = {"y"}}), IsEmpty());
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(FieldsTest, TheNearestFieldIsNamed) {
  AddField("rating", "ratng");
  Add("file", "{\"rating\": 1}\n");
  EXPECT_THAT(Check({.required = {"rating"}}),
              ElementsAre(HasSubstr("has a field \"ratng\"; did you mean \"rating\"? Or write ")));
}

TEST_F(FieldsTest, AColumnOfCsvThatIsEmpty) {
  pb::CsvColumnProto* const y = dataset_.mutable_csv()->add_columns();
  y->set_name("y");
  y->set_kind(pb::CsvColumnProto::NUMBER);
  y->set_index(1);
  Add("file", "1,\n2,\n");
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(notes_, ElementsAre("column y: it is missing in all of the first 2 records; is this "
                                  "the right field?"));
  EXPECT_THAT(Check({.required = {"y"}}),
              ElementsAre(HasSubstr("column y, the model's label: it is missing in all")));
}

TEST_F(FieldsTest, AVocabularyOfOtherTexts) {
  pb::CsvColumnProto* const column = dataset_.mutable_csv()->mutable_columns(0);
  column->set_kind(pb::CsvColumnProto::VOCABULARY);
  column->set_vocabulary_file("words");
  column->set_vocabulary("u\nv\n");
  column->set_oov_buckets(1);
  Add("file", " u\n v\nw\n");
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(notes_,
              ElementsAre("column x: none of the first 3 texts is in words, such as \" u\"; "
                          "without the spaces around them 2 would be: write trim: true"));
  dataset_.mutable_csv()->set_trim(true);
  Check();
  EXPECT_THAT(notes_, IsEmpty());
  dataset_.mutable_csv()->set_trim(false);
  std::string others;
  for (int i = 0; i < 21; ++i) others += "z\n";
  Add("more", "u\n" + others);
  Check();
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("column x: but 1 of the first 25 texts is in words")));
  Add("enough", "u\n");
  Check();
  EXPECT_THAT(notes_, IsEmpty()) << "of a vocabulary much may be outside";
  dataset_.clear_files();
  Add("none", "z\n");
  Check();
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("\"z\"; is this the vocabulary of this column?")));
}

class LabelsTest : public CheckFilesTest {
 protected:
  void SetUp() override {
    CheckFilesTest::SetUp();
    pb::CsvColumnProto* const column = dataset_.mutable_csv()->mutable_columns(0);
    column->set_kind(pb::CsvColumnProto::LABEL);
    column->add_positive("yes");
  }
  static std::string Lines(int count) {
    std::string lines;
    for (int i = 0; i < count; ++i) lines += i % 2 == 0 ? "no\n" : "1\n";
    return lines;
  }
};

TEST_F(LabelsTest, OfWhichNoneIsPositive) {
  Add("file", Lines(150));
  EXPECT_THAT(CheckFiles(dataset_, false),
              ElementsAre(HasSubstr("column x: none of 150 labels is one of its `positive` texts, "
                                    "\"yes\"; they are \"no\", \"1\"")));
  EXPECT_TRUE(LookForPositives(dataset_).all);
  Add("another", Lines(120) + "yes\n");
  EXPECT_THAT(CheckFiles(dataset_, false), IsEmpty());
  EXPECT_EQ(LookForPositives(dataset_).why, "");
}

TEST_F(LabelsTest, PositiveOnesMayComeFurtherBehind) {
  Add("file", Lines(30'000));
  EXPECT_THAT(CheckFiles(dataset_, false), ElementsAre(HasSubstr("none of 30000 labels")));
  EXPECT_TRUE(LookForPositives(dataset_).all);
  Add("another", Lines(30'000) + "yes\n");
  EXPECT_THAT(CheckFiles(dataset_, false), IsEmpty());
  EXPECT_EQ(LookForPositives(dataset_).why, "");
}

TEST_F(LabelsTest, PositiveOnesMayBeInOtherFiles) {
  for (int i = 0; i < 5; ++i) Add(absl::StrCat(i), Lines(1));
  EXPECT_THAT(CheckFiles(dataset_, false), ElementsAre(HasSubstr("none of 5 labels")));
  Add("5", "yes\n");
  EXPECT_THAT(CheckFiles(dataset_, false), IsEmpty());
}

TEST_F(LabelsTest, OneColumnsPositivesDoNotStandForAnothers) {
  pb::CsvColumnProto* const other = dataset_.mutable_csv()->add_columns();
  other->set_name("y");
  other->set_kind(pb::CsvColumnProto::LABEL);
  other->set_index(1);
  other->add_positive("yes");
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "yes,no\n";
  Add("file", lines);
  EXPECT_THAT(CheckFiles(dataset_, false), ElementsAre(HasSubstr("column y: none of 200 labels")));
  Add("another", "no,no\nno,yes\n");
  EXPECT_THAT(CheckFiles(dataset_, false), IsEmpty());
}

TEST_F(LabelsTest, OfWhichAllArePositive) {
  dataset_.mutable_csv()->mutable_columns(0)->add_positive("ja");
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "yes\nja\n";
  Add("file", lines);
  std::vector<std::string> notes;
  EXPECT_THAT(CheckFiles(dataset_, false, {.binary = {"x"}, .trains = true}, &notes),
              ElementsAre(HasSubstr("column x: all of 400 labels are among its `positive` texts, "
                                    "\"yes\", \"ja\"; a model of two classes learns nothing")));
  EXPECT_THAT(notes, IsEmpty());
  // What is evaluated may be of one class: that is known to whoever chose it, or a mistake.
  EXPECT_THAT(CheckFiles(dataset_, false, {.binary = {"x"}}, &notes), IsEmpty());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("column x: all of 400 labels are among")));
  // A column that is no label of the model may be anything.
  EXPECT_THAT(CheckFiles(dataset_, false, {.trains = true}), IsEmpty());
  Add("another", lines + "no\n");
  EXPECT_THAT(CheckFiles(dataset_, false, {.binary = {"x"}, .trains = true}), IsEmpty());
}

TEST_F(LabelsTest, NumbersThatAreAllTheSame) {
  dataset_.mutable_csv()->mutable_columns(0)->set_kind(pb::CsvColumnProto::NUMBER);
  const CheckedLabels labels{.binary = {"x"}, .trains = true};
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "0\n";
  Add("file", lines);
  EXPECT_THAT(CheckFiles(dataset_, false, labels),
              ElementsAre(HasSubstr("column x: all of 200 labels are 0; a model of two classes")));
  Add("another", lines + "1\n");
  EXPECT_THAT(CheckFiles(dataset_, false, labels), IsEmpty());
  dataset_.clear_files();
  Add("part", "0.5\n0.5\n");
  EXPECT_THAT(CheckFiles(dataset_, false, labels), IsEmpty()) << "the part of a group";
  dataset_.clear_files();
  Add("ones", "1\n1\n");
  EXPECT_THAT(CheckFiles(dataset_, false, labels), ElementsAre(HasSubstr("2 labels are 1; ")));
  dataset_.add_files("/another/machine/file");
  EXPECT_THAT(CheckFiles(dataset_, true, labels), IsEmpty());
}

TEST_F(LabelsTest, AllMissing) {
  dataset_.mutable_csv()->add_missing("?");
  Add("file", "?\n?\n?\n");
  EXPECT_THAT(CheckFiles(dataset_, false),
              ElementsAre(HasSubstr("column x: all of 3 labels are missing, which counts as 0")));
  Add("another", "?\nyes\n");
  EXPECT_THAT(CheckFiles(dataset_, false), IsEmpty());
}

// What cannot be read to its end may have positive labels there.
TEST_F(LabelsTest, BadRecordsAreToldInstead) {
  dataset_.mutable_csv()->mutable_columns(0)->set_required(true);
  dataset_.mutable_csv()->add_missing("?");
  Add("file", Lines(200) + "?\n");
  EXPECT_FALSE(LookForPositives(dataset_).all);
  dataset_.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  EXPECT_THAT(CheckFiles(dataset_, false), ElementsAre(HasSubstr("none of 200 labels")));
}

TEST_F(LabelsTest, OfLibsvm) {
  dataset_.mutable_libsvm()->set_features(4);
  dataset_.mutable_libsvm()->add_positive("2");
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += i % 2 == 0 ? "-1 0:1\n" : "+1 3:1\n";
  Add("file", lines);
  EXPECT_THAT(CheckFiles(dataset_, false),
              ElementsAre("column label: none of 200 labels is one of its `positive` texts, "
                          "\"2\"; they are \"-1\", \"+1\"; name those that mean 1 in "
                          "`positive`"));
  Add("another", lines + "2 0:1\n");
  EXPECT_THAT(CheckFiles(dataset_, false), IsEmpty());
  dataset_.mutable_libsvm()->set_positive(0, "1");
  EXPECT_THAT(CheckFiles(dataset_, false), ElementsAre(HasSubstr("add \"+1\" to `positive`")));
}

TEST_F(LabelsTest, PositiveOnesMayBeOnAnotherMachine) {
  Add("file", Lines(2));
  dataset_.add_files("/another/machine/file");
  EXPECT_THAT(CheckFiles(dataset_, true), IsEmpty());
  EXPECT_FALSE(LookForPositives(dataset_).all);
}

}  // namespace
}  // namespace mu
