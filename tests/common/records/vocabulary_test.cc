#include "common/records/vocabulary.h"

#include <gmock/gmock.h>

#include "common/base/status.h"
#include "common/env/compression.h"
#include "common/env/file.h"
#include "common/records/label_texts.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(VocabularyTest, LinesAreIds) {
  const Vocabulary words("a\nb c\n\xC3\xA9\n");
  EXPECT_EQ(words.size(), 3);
  EXPECT_EQ(words.Find("a"), 0);
  EXPECT_EQ(words.Find("b c"), 1);
  EXPECT_EQ(words.Find("\xC3\xA9"), 2);
  EXPECT_EQ(words.Find("b"), -1);
  EXPECT_EQ(words.Find(""), -1);
}

class ReadVocabulariesTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Read(const std::string& text,
                                   Compression compression = Compression::kNone) {
    MU_ASSIGN_OR_RETURN(const auto directory, TempDirectory::Create("vocabulary_test"));
    const std::string path = JoinPath(directory.path(), "v.txt");
    MU_RETURN_IF_ERROR(AppendToFile(path, Compress(compression, text).value()));
    pb::DatasetProto dataset;
    pb::CsvColumnProto* column = dataset.mutable_csv()->add_columns();
    column->set_name("x");
    column->set_kind(pb::CsvColumnProto::VOCABULARY);
    column->set_vocabulary_file(path);
    MU_RETURN_IF_ERROR(ReadVocabularies(&dataset));
    return dataset.csv().columns(0).vocabulary();
  }
};

TEST_F(ReadVocabulariesTest, PutsTheTextsIntoTheDataset) {
  for (const char* text : {"a\nb\n", "a\nb",
                           "\xEF\xBB\xBF"
                           "a\r\nb\r\n"})
    EXPECT_EQ(Read(text).value(), "a\nb\n");
  EXPECT_EQ(Read("a\nb\n", Compression::kGzip).value(), "a\nb\n");
}

TEST_F(ReadVocabulariesTest, RefusesWhatIsNoVocabulary) {
  const auto invalid = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr("vocabulary of column x: "), HasSubstr(what)));
  };
  EXPECT_THAT(Read("a\nb\na\n"), invalid("v.txt:3: \"a\" stands there twice"));
  EXPECT_THAT(Read("a\n\nb\n"), invalid("v.txt:2: the line is empty"));
  EXPECT_THAT(Read(""), invalid("it has no texts"));
  std::string large;
  for (int i = 0; large.size() <= kMaxVocabularyBytes; ++i) large += std::to_string(i) + "\n";
  EXPECT_THAT(Read(large), invalid("has more than"));
  pb::DatasetProto missing;
  pb::CsvColumnProto* column = missing.mutable_csv()->add_columns();
  column->set_kind(pb::CsvColumnProto::VOCABULARY);
  column->set_vocabulary_file("/nowhere/v.txt");
  EXPECT_THAT(ReadVocabularies(&missing),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/v.txt")));
}

LabelTexts::Found Found(const std::vector<std::string>& positive,
                        const std::vector<std::string>& texts) {
  pb::DatasetProto dataset;
  pb::CsvColumnProto* column = dataset.mutable_csv()->add_columns();
  column->set_name("y");
  column->set_kind(pb::CsvColumnProto::LABEL);
  for (const std::string& text : positive) column->add_positive(text);
  LabelTexts labels(dataset);
  for (const std::string& text : texts) labels.OnText(0, text);
  return labels.found().at("y");
}

TEST(LabelTextsTest, SaysWhatTheLabelsAre) {
  const LabelTexts::Found found = Found({"yes"}, {"no", "maybe", "no"});
  EXPECT_EQ(NoneIsPositive(found),
            "none of 3 labels is one of its `positive` texts, \"yes\"; they are \"no\", \"maybe\"; "
            "name those that mean 1 in `positive`");
  EXPECT_FALSE(IsNearlyPositive(found));
  EXPECT_EQ(Found({"yes"}, {"yes", "no"}).positives, 1u);
  EXPECT_FALSE(IsNearlyPositive(Found({"yes"}, {"yes", "yes."})));
}

TEST(LabelTextsTest, SeesWhatIsMeant) {
  for (const auto& [positive, text] :
       {std::pair(">50K", " >50K"), std::pair(">50K", ">50K."), std::pair("1", "1.0"),
        std::pair("1", "+1"), std::pair("Yes", "yes")}) {
    EXPECT_TRUE(IsNearlyPositive(Found({positive}, {"no", text}))) << text;
  }
  EXPECT_FALSE(IsNearlyPositive(Found({"1"}, {"0", "-1"})));
  EXPECT_THAT(NoneIsPositive(Found({"a"}, {" a"})), HasSubstr("write trim: true"));
  EXPECT_THAT(NoneIsPositive(Found({"1"}, {"1.0"})), HasSubstr("add \"1.0\" to `positive`"));
}

}  // namespace
}  // namespace mu
