#include "common/records/first_records.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/compression.h"
#include "common/env/file.h"
#include "common/records/tfrecord_format.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

FirstRecords First(const pb::DatasetProto& dataset, const std::string& path, uint64_t most) {
  return ReadFirstRecords(dataset, {path}, most);
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMost = 100;

class FirstRecordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TempDirectory::Create("first_records");
    ASSERT_THAT(directory, testing::IsOk());
    directory_ = std::make_unique<TempDirectory>(*std::move(directory));
    csv_.mutable_csv()->set_header(true);
    AddColumn("user", pb::CsvColumnProto::ID);
    AddColumn("rating", pb::CsvColumnProto::NUMBER);
    criteo_.mutable_criteo_tsv()->set_hash_buckets(1000);
  }

  void AddColumn(const std::string& name, pb::CsvColumnProto::Kind kind) {
    pb::CsvColumnProto* column = csv_.mutable_csv()->add_columns();
    column->set_name(name);
    column->set_kind(kind);
    column->set_index(-1);
  }
  std::string Write(const std::string& name, const std::string& contents) {
    const std::string path = JoinPath(directory_->path(), name);
    EXPECT_THAT(AppendToFile(path, contents), testing::IsOk());
    return path;
  }
  std::string WritePacked(const std::string& name, Compression compression,
                          const std::string& contents) {
    return Write(name, Compress(compression, contents).value());
  }

  std::unique_ptr<TempDirectory> directory_;
  pb::DatasetProto csv_, criteo_;
};

TEST_F(FirstRecordsTest, AGoodFileHasNoProblem) {
  const FirstRecords plain =
      First(csv_, Write("a.csv", "\xEF\xBB\xBFuser,rating\r\n1,2.5\r\n\r\n2,3"), kMost);
  EXPECT_THAT(plain.problems, IsEmpty());
  EXPECT_EQ(plain.records, 2u);
  std::string rows = "user,rating\n";
  for (int i = 0; i < 50'000; ++i) absl::StrAppend(&rows, i, ",1\n");
  for (const auto& [name, compression] :
       {std::pair("b.csv.gz", Compression::kGzip), std::pair("c.csv.zst", Compression::kZstd)}) {
    const FirstRecords packed = First(csv_, WritePacked(name, compression, rows), 20'000);
    EXPECT_THAT(packed.problems, IsEmpty()) << name;
    EXPECT_EQ(packed.records, 20'000u) << name;
  }
}

TEST_F(FirstRecordsTest, FilesOfOneDatasetShareAFormat) {
  const std::shared_ptr<const RecordFormat> format = MakeRecordFormat(csv_).value();
  for (const auto& [name, rows] : {std::pair("a.csv", "user,rating\n1,2.5\n"),
                                   std::pair("b.csv", "rating,user\n2.5,1\n0.5,2\n")}) {
    const std::string path = Write(name, rows);
    for (const auto& given : {format, std::shared_ptr<const RecordFormat>()}) {
      const FirstRecords first = ReadFirstRecords(csv_, {path}, kMost, {"rating"}, given);
      EXPECT_THAT(first.problems, IsEmpty());
      EXPECT_GT(first.good, 0u);
      EXPECT_EQ(first.binary.at("rating").most, 2.5f);
      EXPECT_THAT(ReadUntilPositive(csv_, {path}, given).problems, IsEmpty());
      EXPECT_EQ(ReadUntilVaried(csv_, {path}, {"rating"}, given).records, first.records);
    }
  }
  // It is used: that of another dataset asks for another column.
  pb::DatasetProto two = csv_;
  AddColumn("item", pb::CsvColumnProto::ID);
  const std::shared_ptr<const RecordFormat> other = MakeRecordFormat(csv_).value();
  const std::string path = Write("c.csv", "user,rating\n1,2.5\n");
  EXPECT_THAT(First(two, path, kMost).problems, IsEmpty());
  EXPECT_THAT(ReadFirstRecords(two, {path}, kMost, {}, other).problems,
              ElementsAre(HasSubstr("item")));
}

TEST_F(FirstRecordsTest, EachColumnThatTheHeaderLacks) {
  AddColumn("item", pb::CsvColumnProto::ID);
  const std::string path = Write("a.csv", "\nusr,movieId,rating\n1,2,3\n");
  EXPECT_THAT(
      First(csv_, path, kMost).problems,
      ElementsAre(path + ":2: the header has no column \"user\"; did you mean \"usr\"?",
                  path + ":2: the header has no column \"item\"; it names usr, movieId, rating"));
}

TEST_F(FirstRecordsTest, AHeaderThatIsCutWrongly) {
  const std::string path = Write("a.csv", "user;rating\n1;2\n");
  EXPECT_THAT(
      First(csv_, path, kMost).problems,
      ElementsAre(path + ":1: the header has no column \"user\", \"rating\"; it has no \",\", "
                         "but \";\" 1 time: write delimiter: \";\""));
  EXPECT_THAT(First(csv_, Write("b.csv", "user\trating\tx\n1\t2\t3\n"), kMost).problems,
              ElementsAre(HasSubstr("but \"\\t\" 2 times: write delimiter: \"\\t\"")));
  csv_.mutable_csv()->set_delimiter("\t");
  EXPECT_THAT(
      First(csv_, Write("c.csv", "user,rating\n"), kMost).problems,
      ElementsAre(HasSubstr("it has no \"\\t\", but \",\" 1 time: write delimiter: \",\"")));
}

TEST_F(FirstRecordsTest, ARecordWhereAHeaderIsExpected) {
  const std::string path = Write("a.csv", "1,0.5\n2,3\n");
  EXPECT_THAT(
      First(csv_, path, kMost).problems,
      ElementsAre(path + ":1: the header has no column \"user\", \"rating\"; it holds 1: if "
                         "this line is a record, write header: false, and each column's "
                         "index, counted from 0"));
  // A year may name a column.
  EXPECT_THAT(First(csv_, Write("b.csv", "user,2024\n1,2\n"), kMost).problems,
              ElementsAre(HasSubstr("the header has no column \"rating\"; it names user, 2024")));
}

TEST_F(FirstRecordsTest, AHeaderWhereARecordIsExpected) {
  csv_.mutable_csv()->set_header(false);
  csv_.mutable_csv()->mutable_columns(0)->set_index(0);
  csv_.mutable_csv()->mutable_columns(1)->set_index(1);
  EXPECT_THAT(
      First(csv_, Write("a.csv", "user,rating\n1,2\nx,3\n"), kMost).problems,
      ElementsAre(HasSubstr("a.csv:1: column user: \"user\" is not an integer; if this line "
                            "names the columns, write skip_lines: 1, or header: true. If "
                            "not, mend the file, or leave such records out"),
                  HasSubstr("a.csv:3: column user: \"x\" is not an integer; mend")));
  EXPECT_THAT(First(csv_, Write("b.csv", "user,rating\na,2\n"), kMost).problems,
              ElementsAre(HasSubstr("\"user\" is not an integer; mend"),
                          HasSubstr("\"a\" is not an integer; mend")));
}

TEST_F(FirstRecordsTest, BadRecordsByLine) {
  const std::string path = Write("a.csv", "user,rating\nx,1\n2,2\n3,\"\n\"\n5,y\n6\n7\n8\n");
  EXPECT_THAT(
      First(csv_, path, kMost).problems,
      ElementsAre(HasSubstr(path + ":2: column user: \"x\" is not an integer; mend the file"),
                  HasSubstr(path + ":4: column rating:"),
                  HasSubstr(path + ":6: column rating: \"y\""),
                  path + ": 3 more of its first 7 records are bad"));
  EXPECT_THAT(First(csv_, path, 2).problems, ElementsAre(HasSubstr(":2: ")));
}

TEST_F(FirstRecordsTest, RecordsThatAreNotKeptMayBeBad) {
  csv_.mutable_records()->set_modulo(2);
  csv_.mutable_records()->add_keep(1);
  EXPECT_THAT(First(csv_, Write("a.csv", "user,rating\nx,1\n2,2\ny,1\n4,2\n"), kMost).problems,
              IsEmpty());
}

TEST_F(FirstRecordsTest, SkippedRecordsAreAProblemOnlyIfNoneIsGood) {
  csv_.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  const std::string some = Write("some.csv", "user,rating\nx,1\n2,2\n");
  EXPECT_THAT(First(csv_, some, 2).problems, IsEmpty());
  const auto lines = [](int bad) {
    std::string text = "user,rating\n";
    for (int i = 0; i < bad; ++i) text += "x,1\n";
    return text;
  };
  const std::string none = Write("none.csv", lines(100) + "3,3\n");
  const FirstRecords first = First(csv_, none, kMost);
  EXPECT_THAT(
      first.problems,
      ElementsAre(HasSubstr(
          none + ": none of its first 100 records is good; is this the right format? The first: " +
          none + ":2: column user")));
  EXPECT_EQ(first.none_good, "");
  // Where but one record is asked for, the bad ones before the first good one are passed over.
  const FirstRecords one = First(csv_, Write("late.csv", lines(99) + "3,3\n"), 1);
  EXPECT_THAT(one.problems, IsEmpty());
  EXPECT_EQ(one.good, 1u);
  EXPECT_EQ(one.none_good, "");
}

TEST_F(FirstRecordsTest, AShortFileOfBadRecordsAlone) {
  csv_.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  const std::string path = Write("short.csv", "user,rating\nx,1\ny,2\n");
  const FirstRecords first = First(csv_, path, kMost);
  EXPECT_THAT(first.problems, IsEmpty()) << "another file may have good ones";
  EXPECT_THAT(first.none_good,
              HasSubstr(path +
                        ": none of its 2 records is good; is this the right format? The "
                        "first: " +
                        path + ":2: column user"));
  EXPECT_EQ(First(csv_, Write("empty.csv", "user,rating\n"), kMost).none_good, "");
}

TEST_F(FirstRecordsTest, NumbersThatAreNoLabelsOfTwoClasses) {
  const auto wrong = [&](const std::string& name, const std::string& lines) {
    const std::string path = Write(name, "user,rating\n" + lines);
    const FirstRecords first = ReadFirstRecords(csv_, {path}, kMost, {"rating", "absent", "user"});
    EXPECT_THAT(first.problems, IsEmpty());
    return first.not_binary.empty() ? "" : first.not_binary.substr(path.size());
  };
  EXPECT_EQ(wrong("a.csv", "1,1\n2,-1\n3,-1\n"),
            ":3: column rating: -1 is neither 0 nor 1, as a label of two classes has to be; the "
            "first labels are -1, 1; write kind: label, and name the texts that mean 1: positive: "
            "[\"1\"]");
  EXPECT_EQ(wrong("b.csv", "1,1\n2,2\n3,3\n"),
            ":3: column rating: 2 is neither 0 nor 1, as a label of two classes has to be; the "
            "first labels are 1, 2, 3; write kind: class and `classes`, there and in the model; or "
            "kind: label, and name the texts that mean 1 in `positive`");
  EXPECT_THAT(wrong("c.csv", "1,1\n2,2\n2,3\n2,4\n2,5\n2,6\n2,7\n2,8\n2,9\n"),
              HasSubstr("are 1, 2, 3, 4, 5, 6, 7, 8, ...; "));
  EXPECT_EQ(wrong("d.csv", "1,0\n2,1\n3,0.25\n"), "");
  EXPECT_EQ(First(csv_, Write("e.csv", "user,rating\n1,-1\n"), kMost).not_binary, "");
  // A bad record is not the only thing to be told.
  const std::string both = Write("f.csv", "user,rating\nx,-1\n2,-2\n");
  const FirstRecords two = ReadFirstRecords(csv_, {both}, kMost, {"rating"});
  EXPECT_THAT(two.problems, ElementsAre(HasSubstr("f.csv:2: column user")));
  EXPECT_THAT(two.not_binary, HasSubstr("f.csv:3: column rating: -2 is neither"));
  pb::DatasetProto libsvm;
  libsvm.mutable_libsvm()->set_features(3);
  const std::string path = Write("g", "+1 1:1\n-1 2:1\n");
  EXPECT_EQ(ReadFirstRecords(libsvm, {path}, kMost, {"label"}).not_binary,
            path +
                ":2: column label: -1 is neither 0 nor 1, as a label of two classes has to be; "
                "the first labels are -1, 1; name the texts that mean 1: positive: [\"+1\"]");
}

TEST_F(FirstRecordsTest, NamesOfTheFieldsThatRecordsHave) {
  pb::DatasetProto jsonl;
  pb::CsvColumnProto* const column = jsonl.mutable_jsonl()->add_columns();
  column->set_name("x");
  column->set_kind(pb::CsvColumnProto::NUMBER);
  const FirstRecords first = First(
      jsonl,
      Write("a.jsonl", "{\"a\": [1, {\"q\": 1}], \"b\\u0063\": 2}\n{\"x\": 1}\n{\"x\": null}\n{"),
      3);
  EXPECT_THAT(first.fields, ElementsAre("a", "bc", "x"));
  EXPECT_EQ(first.counts.at("x").present, 1u);
  EXPECT_EQ(first.counts.at("x").missing, 2u);
  EXPECT_THAT(First(csv_, Write("a.csv", "user,rating\n1,2\n"), kMost).fields, IsEmpty());
}

TEST_F(FirstRecordsTest, ReadsUntilALabelVaries) {
  const std::string path = Write("a.csv", "user,rating\n1,1\n2,1\n3,0.5\n4,0\n");
  const LabelRange first = ReadFirstRecords(csv_, {path}, 2, {"rating"}).binary.at("rating");
  EXPECT_EQ(first.labels, 2u);
  EXPECT_EQ(first.least, 1.0f);
  const FirstRecords varied = ReadUntilVaried(csv_, {path}, {"rating"});
  EXPECT_EQ(varied.records, 3u);
  EXPECT_EQ(varied.binary.at("rating").least, 0.5f);
  EXPECT_EQ(varied.binary.at("rating").most, 1.0f);
}

TEST_F(FirstRecordsTest, LinesOfCommentsAreNoRecords) {
  const std::string head =
      "# Generated by dump_svmlight_file from scikit-learn\n# Column indices are one-based\n \t\n";
  pb::DatasetProto libsvm, libffm;
  libsvm.mutable_libsvm()->set_features(3);
  libffm.mutable_libffm()->set_features(3);
  libffm.mutable_libffm()->set_fields(1);
  for (const auto& [name, dataset, feature] :
       {std::tuple("svm", libsvm, "1:1"), std::tuple("ffm", libffm, "0:1:1")}) {
    const std::string lines = absl::StrCat(head, "1 ", feature, "\n # none\n0 ", feature, "\n#");
    const FirstRecords first = First(dataset, Write(name, lines), kMost);
    EXPECT_THAT(first.problems, IsEmpty()) << name;
    EXPECT_EQ(first.records, 2u) << name;
    // What is wrong is at the line of the file, not of the records.
    const std::string bad = Write(absl::StrCat("bad.", name), lines + "\n1 x\n");
    EXPECT_THAT(First(dataset, bad, kMost).problems, ElementsAre(HasSubstr(bad + ":8: column ")))
        << name;
  }
}

TEST_F(FirstRecordsTest, LabelsOfLibsvmThatAreOneAndTwo) {
  pb::DatasetProto libsvm;
  libsvm.mutable_libsvm()->set_features(3);
  EXPECT_THAT(
      ReadFirstRecords(libsvm, {Write("a", "1 1:1\n2 2:1\n")}, kMost, {"label"}).not_binary,
      HasSubstr("the first labels are 1, 2; name the texts that mean 1: positive: [\"2\"]"));
}

TEST_F(FirstRecordsTest, ArraysThatAreNotAsLargeAsTheirHeadsSay) {
  pb::DatasetProto idx;
  idx.mutable_arrays()->set_container(pb::ArraysProto::IDX);
  pb::ArrayColumnProto* const image = idx.mutable_arrays()->add_columns();
  image->set_name("image");
  image->set_dtype(pb::FLOAT32);
  image->add_shape(2);
  const std::string head("\0\0\x8\x2\0\0\0\x3\0\0\0\x2", 12);  // 3 records of 2 bytes
  EXPECT_THAT(First(idx, Write("good", head + "123456"), kMost).problems, IsEmpty());
  EXPECT_THAT(
      First(idx, Write("cut", head + "12345"), 1).problems,
      ElementsAre(HasSubstr("cut: its head promises 3 records of 2 bytes, so that the file "
                            "has 18 bytes, but it has 17; it is not complete: copy it anew")));
  EXPECT_THAT(
      First(idx, Write("long", head + "1234567"), 1).problems,
      ElementsAre(HasSubstr("but it has 19; what follows the last record is not the array's")));
  // What is packed is known only once it is unpacked.
  EXPECT_THAT(First(idx, WritePacked("packed.gz", Compression::kGzip, head + "12345"), 1).problems,
              IsEmpty());
  const std::string labels("\0\0\x8\x1\0\0\0\x2", 8);
  EXPECT_THAT(First(idx, Write("labels", labels + "12"), kMost).problems,
              ElementsAre(HasSubstr("(shape [2]); write `shape` as the file has it")));
  pb::ArrayColumnProto* const label = idx.mutable_arrays()->add_columns();
  label->set_name("label");
  label->set_dtype(pb::INT64);
  idx.add_companions();
  const FirstRecords swapped =
      ReadFirstRecords(idx, {Write("l", labels + "12"), Write("i", head + "123456")}, kMost);
  EXPECT_THAT(swapped.problems,
              ElementsAre(HasSubstr("is this the file of another column, such as the labels?")));
  image->set_scale(0);
  EXPECT_THAT(ReadFirstRecords(idx, {Write("x", labels), Write("y", head)}, kMost).problems,
              ElementsAre(HasSubstr("scale must be a finite number other than 0")));
}

TEST_F(FirstRecordsTest, JsonThatIsNotOneObjectALine) {
  pb::DatasetProto jsonl;
  pb::CsvColumnProto* const column = jsonl.mutable_jsonl()->add_columns();
  column->set_name("x");
  column->set_kind(pb::CsvColumnProto::NUMBER);
  EXPECT_THAT(First(jsonl, Write("a", "[{\"x\": 1}, {\"x\": 2}]\n"), kMost).problems,
              ElementsAre(HasSubstr("a line is one object, not an array: jq -c '.[]' FILE")));
  EXPECT_THAT(First(jsonl, Write("b", "{\n  \"x\": 1\n}\n"), 1).problems,
              ElementsAre(HasSubstr("an object stands in one line: jq -c . FILE makes lines")));
}

TEST_F(FirstRecordsTest, AClickLogWithAnotherNumberOfFields) {
  const std::string path = Write("a.tsv", "1\t2\t3\n");
  EXPECT_THAT(
      First(criteo_, path, kMost).problems,
      ElementsAre(HasSubstr(path + ":1: column integer 3: is not there; the line has 3 of 40")));
}

TEST_F(FirstRecordsTest, FilesThatAreNotWhatTheyAreCalled) {
  const std::string text = Write("a.csv.gz", "user,rating\n1,2\n");
  EXPECT_THAT(First(csv_, text, kMost).problems,
              ElementsAre(HasSubstr(text + " does not begin as a compressed file does")));
  const std::string torn =
      Write("b.csv.gz", Compress(Compression::kGzip, "user,rating\n1,2\n").value().substr(0, 15));
  EXPECT_THAT(First(csv_, torn, kMost).problems, ElementsAre(HasSubstr(torn)));
  const std::string broken =
      Write("c.csv.zst", std::string("\x28\xB5\x2F\xFD") + std::string(40, '\x77'));
  EXPECT_THAT(First(csv_, broken, kMost).problems, ElementsAre(HasSubstr(broken)));
  EXPECT_THAT(First(csv_, directory_->path(), kMost).problems, ElementsAre(HasSubstr("directory")));
  EXPECT_THAT(First(csv_, "/nowhere/a.csv", kMost).problems,
              ElementsAre(HasSubstr("/nowhere/a.csv")));
}

TEST_F(FirstRecordsTest, FilesOfOtherEncodingsAndPackers) {
  const auto of = [&](const std::string& name, absl::string_view bytes) {
    const std::vector<std::string> problems =
        First(csv_, Write(name, std::string(bytes)), kMost).problems;
    EXPECT_EQ(problems.size(), 1u) << name;
    return problems.empty() ? "" : problems[0];
  };
  using absl::string_view;
  for (const auto& [name, bytes] : {std::pair("le", string_view("\xFF\xFEu\0s\0", 6)),
                                    std::pair("be", string_view("\xFE\xFF\0u", 4)),
                                    std::pair("no_mark", string_view("u\0s\0e\0r\0,\0", 10)),
                                    std::pair("no_mark_be", string_view("\0u\0s\0e\0r\0,", 10))})
    EXPECT_THAT(of(name, bytes), HasSubstr(absl::StrCat(name, " is UTF-16, but texts are")))
        << name;
  for (const auto& [name, bytes] :
       {std::pair("bzip2", string_view("BZh91AY&SY\x1")), std::pair("zip", string_view("PK\x3\x4")),
        std::pair("xz", string_view("\xFD"
                                    "7zXZ\0",
                                    6)),
        std::pair("lz4", string_view("\x4\x22\x4D\x18"))})
    EXPECT_THAT(of(name, bytes), HasSubstr(absl::StrCat(" is packed with ", name, ", but gzip")))
        << name;
  EXPECT_THAT(of("p", "PAR1\x15\x4"), HasSubstr("p is Parquet, for which there is no reader"));
  // Inside of another packer, too.
  const std::string packed = WritePacked("u.gz", Compression::kGzip, std::string("\xFF\xFEu\0", 4));
  EXPECT_THAT(First(csv_, packed, kMost).problems, ElementsAre(HasSubstr("u.gz is UTF-16")));
  // Text that only begins alike, and formats of other bytes.
  csv_.mutable_csv()->mutable_columns(0)->set_field("BZh");
  EXPECT_THAT(First(csv_, Write("b.csv", "BZh,rating\n1,2\n"), kMost).problems, IsEmpty());
  csv_.mutable_csv()->mutable_columns(0)->set_field("PAR1");
  EXPECT_THAT(First(csv_, Write("c.csv", "PAR1,rating\n1,2\n"), kMost).problems, IsEmpty());
  pb::DatasetProto tfrecord;
  pb::CsvColumnProto* const column = tfrecord.mutable_tfrecord()->add_columns();
  column->set_name("x");
  column->set_kind(pb::CsvColumnProto::NUMBER);
  EXPECT_THAT(
      First(tfrecord, Write("d", std::string("\xFF\xFE\0\0\0\0\0\0\0\0\0\0", 12)), kMost).problems,
      ElementsAre(::testing::Not(HasSubstr("UTF-16"))));
}

TEST_F(FirstRecordsTest, TfrecordsThatBeginAsGzipDoes) {
  pb::DatasetProto tfrecord;
  pb::CsvColumnProto* const column = tfrecord.mutable_tfrecord()->add_columns();
  column->set_name("x");
  column->set_kind(pb::CsvColumnProto::NUMBER);
  for (const size_t length : {size_t{0x8B1F}, size_t{0x88B1F}}) {
    // A tf.Example of this size: a field of bytes, which no reader knows.
    const size_t size = length - 4;
    std::string message = {'\x7A', static_cast<char>((size & 0x7F) | 0x80),
                           static_cast<char>(((size >> 7) & 0x7F) | 0x80),
                           static_cast<char>(size >> 14)};
    message.append(size, 'x');
    const std::string frame = TfrecordFrame(message);
    const FirstRecords first =
        First(tfrecord, Write(absl::StrCat(length, ".tfrecord"), frame + frame), kMost);
    EXPECT_THAT(first.problems, IsEmpty()) << length;
    EXPECT_EQ(first.good, 2u) << length;
  }
}

TEST_F(FirstRecordsTest, EmptyFiles) {
  EXPECT_THAT(First(csv_, Write("a.csv", ""), kMost).problems,
              ElementsAre(HasSubstr("a.csv:1: the file is empty")));
  // Without a header an empty file is a file of no records.
  const FirstRecords empty = First(criteo_, Write("b.tsv", ""), kMost);
  EXPECT_THAT(empty.problems, IsEmpty());
  EXPECT_EQ(empty.records, 0u);
}

TEST_F(FirstRecordsTest, BytesThatAreNoTextDoNotReachMessages) {
  EXPECT_THAT(First(csv_, Write("a.csv", "user,rating\ncaf\xE9,1\n"), kMost).problems,
              ElementsAre(HasSubstr("\"caf?\" is not an integer")));
  const std::string noise = Write("b.csv", "user,rating\n1," + std::string(17 << 20, 'x'));
  EXPECT_THAT(First(csv_, noise, kMost).problems,
              ElementsAre(HasSubstr("b.csv:2: the line has more than")));
}

}  // namespace
}  // namespace mu
