#include <cmath>

#include "common/records/bucket_hash.h"
#include "tests/worker/data/data_test_util.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CriteoTest : public DataTest {
 protected:
  pb::DatasetProto Criteo(const std::string& contents, int64_t buckets = 1000) {
    pb::DatasetProto dataset;
    dataset.mutable_criteo_tsv()->set_hash_buckets(buckets);
    dataset.set_batch_size(100);
    dataset.add_files(Write("f.tsv", contents));
    return dataset;
  }
  static std::string Line(const std::string& label, const std::vector<std::string>& integers,
                          const std::vector<std::string>& texts) {
    std::string line = label;
    for (int i = 0; i < 13; ++i)
      line += "\t" + (i < static_cast<int>(integers.size()) ? integers[i] : "");
    for (int i = 0; i < 26; ++i)
      line += "\t" + (i < static_cast<int>(texts.size()) ? texts[i] : "");
    return line;
  }
};

TEST_F(CriteoTest, ParsesAllKindsOfFields) {
  const auto reader =
      Reader(Criteo(Line("1", {"5", "-2", "", "0", "4095", "4096", "123456789012345678"},
                         {"0000000a", "0000000A", "", "word"}) +
                    "\r\n" + Line("0", {}, {})));
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(reader.get()));
  const Batch batch = data->MakeBatch(0);
  EXPECT_THAT(batch.names, ElementsAre("label", "dense", "ids"));
  EXPECT_THAT(Values<float>(batch, "label"), ElementsAre(1.0f, 0.0f));
  const std::vector<float> dense = Values<float>(batch, "dense");
  ASSERT_EQ(dense.size(), 26u);
  const std::vector<double> integers = {5, 0, 0, 0, 4095, 4096, 123456789012345678.0};
  for (size_t i = 0; i < integers.size(); ++i) {
    EXPECT_EQ(dense[i], static_cast<float>(std::log1p(integers[i]))) << i;
  }
  const std::vector<int64_t> ids = Values<int64_t>(batch, "ids");
  ASSERT_EQ(ids.size(), 52u);
  EXPECT_EQ(ids[0], static_cast<int64_t>(HashCombine(0, 10) % 1000));
  EXPECT_EQ(ids[1], static_cast<int64_t>(HashCombine(1, 10) % 1000));
  EXPECT_EQ(ids[2], BucketHash(2, 1000).OfMissing());
  EXPECT_EQ(ids[3], BucketHash(3, 1000).OfText("word"));
  EXPECT_EQ(ids[26 + 25], BucketHash(25, 1000).OfMissing());
  EXPECT_EQ(batch.Find("dense")->shape(), Shape({2, 13}));
  EXPECT_EQ(batch.Find("ids")->shape(), Shape({2, 26}));
}

// As Criteo's own files to predict are: without the first field. It may be there, too.
TEST_F(CriteoTest, UnlabelledRecordsMayHaveALabelOrNot) {
  const std::string rest = Line("", {"5", "-2"}, {"0000000a", "", "word"}).substr(1);
  pb::DatasetProto dataset = Criteo(rest + "\n1\t" + rest + "\n\t" + rest + "\nno\t" + rest);
  dataset.mutable_criteo_tsv()->set_unlabelled(true);
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
  const Batch batch = data->MakeBatch(0);
  EXPECT_THAT(batch.names, ElementsAre("dense", "ids"));
  const std::vector<float> dense = Values<float>(batch, "dense");
  const std::vector<int64_t> ids = Values<int64_t>(batch, "ids");
  ASSERT_EQ(dense.size(), 4u * 13);
  for (size_t record = 0; record < 4; ++record) {
    EXPECT_EQ(dense[13 * record], std::log1p(5.0f)) << record;
    EXPECT_EQ(dense[13 * record + 1], 0) << record;
    EXPECT_EQ(ids[26 * record + 2], BucketHash(2, 1000).OfText("word")) << record;
    EXPECT_EQ(ids[26 * record + 25], BucketHash(25, 1000).OfMissing()) << record;
  }
}

TEST_F(CriteoTest, UnlabelledRecordsOfAnotherLengthAreBad) {
  const std::string rest = Line("", {"5"}, {"a"}).substr(1);
  for (const auto& [line, problem] : std::vector<std::pair<std::string, std::string>>{
           {Line("", {"5"}, {}).substr(3),
            "column categorical 25: is not there; the line has 38 of 40"},
           {"1\t1\t" + rest, "column categorical 26: is followed by more fields"},
           {"1", "column integer 1: is not there; the line has 1 of 40"}}) {
    pb::DatasetProto dataset = Criteo(line);
    dataset.mutable_criteo_tsv()->set_unlabelled(true);
    EXPECT_THAT(ReadFileWhole(Reader(dataset).get()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(problem)))
        << line;
  }
}

TEST_F(CriteoTest, NamesWhatIsWrong) {
  const std::string good = Line("1", {"1"}, {"00000001"});
  const std::vector<std::pair<std::string, std::string>> cases = {
      {Line("2", {}, {}), ":2: column label: \"2\" is not 0 or 1"},
      {Line("", {}, {}), ":2: column label: \"\" is not 0 or 1"},
      {Line("10", {}, {}), ":2: column label: \"10\" is not 0 or 1"},
      {"1", ":2: column integer 1: is not there; the line has 1 of 40"},
      {"0\t1\t2", ":2: column integer 3: is not there; the line has 3 of 40"},
      {Line("1", {"1", "1.5"}, {}), ":2: column integer 2: \"1.5\" is not an integer"},
      {Line("1", {"-"}, {}), ":2: column integer 1: \"-\" is not an integer"},
      {Line("1", {"1234567890123456789"}, {}),
       ":2: column integer 1: \"1234567890123456789\" is too large"},
      {good.substr(0, good.size() - 3),
       ":2: column categorical 24: is not there; the line has 37 of 40"},
      {good + "\t", ":2: column categorical 26: is followed by more fields"},
      {good + "\t\t", ":2: column categorical 26: is followed by more fields"},
      {good.substr(0, good.find("00000001")),
       ":2: column categorical 2: is not there; the line has 15 of 40"},
  };
  for (const auto& [line, message] : cases) {
    pb::DatasetProto dataset = Criteo(good + "\n" + line + "\n" + good + "\n");
    EXPECT_THAT(ReadFileWhole(Reader(dataset).get()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("f.tsv" + message), HasSubstr("skip"))));
    dataset.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
    MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
    EXPECT_EQ(data->records(), 2u);
    EXPECT_EQ(data->bad_records(), 1u);
    EXPECT_THAT(data->first_bad(), HasSubstr(message));
  }
}

class CsvTest : public DataTest {
 protected:
  pb::DatasetProto Csv(const std::string& contents, bool header) {
    pb::DatasetProto dataset;
    dataset.mutable_csv()->set_header(header);
    dataset.set_batch_size(100);
    dataset.add_files(Write("f.csv", contents));
    return dataset;
  }
};

TEST_F(CsvTest, ParsesAllKindsOfColumns) {
  pb::DatasetProto dataset =
      Csv("\xEF\xBB\xBFid,\"the "
          "\"\"number\"\"\",text,label,tags\r\n7,1.5,\"a,b\",yes,x|y||x\r\n\r\n8,?,,no,\n",
          true);
  dataset.mutable_csv()->add_missing("?");
  AddColumn(&dataset, "label", pb::CsvColumnProto::LABEL);
  AddColumn(&dataset, "id", pb::CsvColumnProto::ID);
  AddColumn(&dataset, "the \"number\"", pb::CsvColumnProto::NUMBER)->set_missing_value(-1);
  AddColumn(&dataset, "text", pb::CsvColumnProto::HASH);
  AddColumn(&dataset, "tags", pb::CsvColumnProto::HASH)->set_separator("|");
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
  const Batch batch = data->MakeBatch(0);
  EXPECT_THAT(batch.names,
              ElementsAre("label", "id", "the \"number\"", "text", "tags.values", "tags.splits"));
  EXPECT_THAT(Values<float>(batch, "label"), ElementsAre(1.0f, 0.0f));
  EXPECT_THAT(Values<int64_t>(batch, "id"), ElementsAre(7, 8));
  EXPECT_THAT(Values<float>(batch, "the \"number\""), ElementsAre(1.5f, -1.0f));
  const BucketHash text(HashString("text"), 1000), tags(HashString("tags"), 1000);
  EXPECT_THAT(Values<int64_t>(batch, "text"), ElementsAre(text.OfText("a,b"), text.OfMissing()));
  EXPECT_THAT(Values<int64_t>(batch, "tags.values"),
              ElementsAre(tags.OfText("x"), tags.OfText("y"), tags.OfText("x")));
  EXPECT_THAT(Values<int32_t>(batch, "tags.splits"), ElementsAre(0, 3, 3));
}

TEST_F(CsvTest, ReadsAdult) {
  pb::DatasetProto dataset =
      Csv("|1x3 Cross validator\n25, Private, <=50K.\n?, ?, >50K.\n\n", false);
  dataset.mutable_csv()->set_trim(true);
  dataset.mutable_csv()->add_missing("?");
  dataset.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  AddColumn(&dataset, "age", pb::CsvColumnProto::NUMBER, 0);
  AddColumn(&dataset, "work", pb::CsvColumnProto::HASH, 1);
  pb::CsvColumnProto* label = AddColumn(&dataset, "label", pb::CsvColumnProto::LABEL, 2);
  label->clear_positive();
  label->add_positive(">50K");
  label->add_positive(">50K.");
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
  EXPECT_EQ(data->bad_records(), 1u);
  EXPECT_THAT(data->first_bad(),
              HasSubstr("f.csv:1: column age: \"|1x3 Cross validator\" is not a finite number"));
  const Batch batch = data->MakeBatch(0);
  EXPECT_THAT(Values<float>(batch, "age"), ElementsAre(25.0f, 0.0f));
  EXPECT_THAT(Values<float>(batch, "label"), ElementsAre(0.0f, 1.0f));
}

TEST_F(CsvTest, NamesWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"x,1,a", "column id: \"x\" is not an integer"},
      {"-1,1,a", "column id: \"-1\" is negative"},
      {"9,1,a", "column id: \"9\" is not below 9"},
      {",1,a", "column id: is missing"},
      {"1,one,a", "column number: \"one\" is not a finite number"},
      {"1,,a", "column number: is missing, but required"},
      {"1,1", "the record has 2 fields, but the header names 3"},
      {"1,1,a,b", "the record has 4 fields, but the header names 3"},
      {"1,1,\"a\"b", "field 2: a quote is not closed, or text follows it"},
  };
  for (const auto& [line, message] : cases) {
    pb::DatasetProto dataset = Csv("id,number,text\n1,1,\"a\nb\"\n" + line + "\n3,3,c\n", true);
    AddColumn(&dataset, "id", pb::CsvColumnProto::ID)->set_buckets(9);
    AddColumn(&dataset, "number", pb::CsvColumnProto::NUMBER)->set_required(true);
    EXPECT_THAT(ReadFileWhole(Reader(dataset).get()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("f.csv:4: " + message)));
    dataset.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
    MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
    EXPECT_THAT(Values<int64_t>(data->MakeBatch(0), "id"), ElementsAre(1, 3));
  }
}

TEST_F(CsvTest, ABadRecordLeavesNoListBehind) {
  pb::DatasetProto dataset = Csv("1 2,5\n3 4,x\n6,7\n", false);
  dataset.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  AddColumn(&dataset, "list", pb::CsvColumnProto::ID, 0)->set_separator(" ");
  AddColumn(&dataset, "number", pb::CsvColumnProto::NUMBER, 1);
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
  EXPECT_THAT(Values<int64_t>(data->MakeBatch(0), "list.values"), ElementsAre(1, 2, 6));
  EXPECT_THAT(Values<int32_t>(data->MakeBatch(0), "list.splits"), ElementsAre(0, 2, 3));
}

TEST_F(CsvTest, AMissingHeaderColumnIsNamedWithTheNearest) {
  pb::DatasetProto dataset = Csv("userId,movieId\n1,2\n", true);
  AddColumn(&dataset, "movieid", pb::CsvColumnProto::ID);
  EXPECT_THAT(Reader(dataset)->Layout(0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("f.csv:1: the header has no column \"movieid\""),
                             HasSubstr("\"movieId\""))));
}

TEST_F(CsvTest, AColumnMayHaveAnotherNameInTheHeader) {
  pb::DatasetProto dataset = Csv("userId,movieId\n1,2\n", true);
  AddColumn(&dataset, "item", pb::CsvColumnProto::ID)->set_field("movieId");
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
  EXPECT_THAT(Values<int64_t>(data->MakeBatch(0), "item"), ElementsAre(2));
}

TEST_F(CsvTest, AnEmptyQuoteTurnsQuotesOff) {
  pb::DatasetProto dataset = Csv("\"a;1\nb\";2\n", false);
  dataset.mutable_csv()->set_quote("");
  dataset.mutable_csv()->set_delimiter(";");
  AddColumn(&dataset, "n", pb::CsvColumnProto::NUMBER, 1);
  AddColumn(&dataset, "text", pb::CsvColumnProto::HASH, 0);
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
  const BucketHash text(HashString("text"), 1000);
  EXPECT_THAT(Values<float>(data->MakeBatch(0), "n"), ElementsAre(1.0f, 2.0f));
  EXPECT_THAT(Values<int64_t>(data->MakeBatch(0), "text"),
              ElementsAre(text.OfText("\"a"), text.OfText("b\"")));
}

TEST_F(CsvTest, RefusesWhatMakesNoSense) {
  const auto refused = [&](auto change, const std::string& message) {
    pb::DatasetProto dataset = Csv("1,2\n", false);
    AddColumn(&dataset, "a", pb::CsvColumnProto::NUMBER, 0);
    change(&dataset);
    EXPECT_THAT(DatasetReader::Create(dataset, cache_).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused([](auto* d) { d->set_batch_size(0); }, "batch_size");
  refused([](auto* d) { d->clear_files(); }, "no files");
  refused([](auto* d) { d->clear_csv(); }, "no format");
  refused([](auto* d) { d->mutable_criteo_tsv(); }, "hash_buckets");
  refused([](auto* d) { d->mutable_csv()->clear_columns(); }, "no columns");
  refused([](auto* d) { AddColumn(d, "a", pb::CsvColumnProto::NUMBER, 1); }, "two columns");
  refused([](auto* d) { AddColumn(d, "b", pb::CsvColumnProto::NUMBER, -1); },
          "column b: give its index");
  refused([](auto* d) { AddColumn(d, "b", pb::CsvColumnProto::HASH, 1)->set_buckets(0); },
          "buckets");
  refused([](auto* d) { AddColumn(d, "b", pb::CsvColumnProto::LABEL, 1)->clear_positive(); },
          "positive");
  refused([](auto* d) { AddColumn(d, "b", pb::CsvColumnProto::NUMBER, 1)->set_separator("|"); },
          "separator");
  refused([](auto* d) { d->mutable_csv()->set_delimiter("ab"); }, "delimiter");
  refused([](auto* d) { d->mutable_csv()->set_quote(","); }, "same character");
  refused([](auto* d) { d->mutable_csv()->set_delimiter("\n"); }, "line end");
  refused([](auto* d) { d->mutable_records()->add_keep(0); }, "modulo");
  refused(
      [](auto* d) {
        d->mutable_records()->set_modulo(3);
        for (int i = 0; i < 2; ++i) d->mutable_records()->add_keep(1);
      },
      "twice");
}

}  // namespace
}  // namespace mu
