#include "common/records/column_stats.h"

#include <gmock/gmock.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/graph/dataset_schema.h"
#include "common/records/data_scan.h"
#include "common/records/text_counts.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(ColumnStatsTest, MomentsAreThoseOfTheDefinition) {
  ColumnStats stats("x");
  SplitMix random(3);
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) {
    values.push_back(1e6 + static_cast<double>(random.Below(1000)) / 8);  // exact as floats
    stats.AddNumber(values.back());
  }
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / 1000;
  for (const double value : values) squares += (value - mean) * (value - mean) / 1000;
  const ColumnSummary summary = stats.Summary();
  EXPECT_NEAR(summary.mean, mean, 1e-6);
  EXPECT_NEAR(summary.stddev, std::sqrt(squares), 1e-6);
  EXPECT_EQ(summary.min, *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(summary.max, *std::max_element(values.begin(), values.end()));
  EXPECT_EQ(summary.count, 1000u);
}

// A float keeps multiples of 128 of them.
TEST(ColumnStatsTest, OfTimes) {
  ColumnStats stats("x");
  for (int64_t i = 0; i < 100; ++i) stats.AddText(absl::StrCat(1'700'000'000 + i));
  const ColumnSummary summary = stats.Summary();
  EXPECT_NEAR(summary.mean, 1700000049.5, 1e-4);
  EXPECT_NEAR(summary.stddev, 28.866, 1e-3);
  EXPECT_EQ(summary.min, 1700000000);
  EXPECT_EQ(summary.max, 1700000099);
  EXPECT_EQ(summary.distinct, 100u);
}

TEST(ColumnStatsTest, TextsThatAreNoNumbersHaveNoMoments) {
  ColumnStats stats("x");
  for (const char* text : {"a", "b", "a", "4", "-2"}) stats.AddText(text);
  stats.AddMissing();
  const ColumnSummary summary = stats.Summary();
  EXPECT_EQ(summary.count, 5u);
  EXPECT_EQ(summary.missing, 1u);
  EXPECT_EQ(summary.numbers, 2u);
  EXPECT_EQ(summary.mean, 1);
  EXPECT_EQ(summary.stddev, 3);
  EXPECT_EQ(summary.distinct, 4u);
  EXPECT_TRUE(summary.distinct_exact);
  EXPECT_EQ(ColumnStats("y").Summary().stddev, 0);
}

TEST(DistinctCounterTest, IsExactAndThenCloseToIt) {
  for (const uint64_t count : {uint64_t{10'000}, uint64_t{10'001}, uint64_t{40'000},
                               uint64_t{100'000}, uint64_t{300'000}}) {
    DistinctCounter counter;
    for (uint64_t i = 0; i < count; ++i) {
      counter.Add(Mix64(i));
      if (i % 3 == 0) counter.Add(Mix64(i));
    }
    EXPECT_EQ(counter.exact(), count <= 10'000);
    const double error = std::abs(static_cast<double>(counter.Estimate()) / count - 1);
    EXPECT_LE(error, counter.exact() ? 0 : 0.03) << count << ": " << counter.Estimate();
  }
}

class ScanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("scan_test"));
    directory_ = std::make_unique<TempDirectory>(std::move(directory));
    auto* csv = dataset_.mutable_csv();
    csv->set_header(true);
    csv->add_missing("?");
    Column("age", pb::CsvColumnProto::NUMBER)->set_mean(1000);
    Column("city", pb::CsvColumnProto::HASH)->set_buckets(3);
    pb::CsvColumnProto* seen = Column("seen", pb::CsvColumnProto::ID);
    seen->set_separator(" ");
    seen->set_length(2);
  }
  pb::CsvColumnProto* Column(const std::string& name, pb::CsvColumnProto::Kind kind) {
    pb::CsvColumnProto* column = dataset_.mutable_csv()->add_columns();
    column->set_name(name);
    column->set_index(-1);
    column->set_kind(kind);
    return column;
  }
  void File(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(directory_->path(), name);
    MU_ASSERT_OK(AppendToFile(path, text));
    dataset_.add_files(path);
  }

  std::unique_ptr<TempDirectory> directory_;
  pb::DatasetProto dataset_;
};

TEST_F(ScanTest, FieldsAreCountedAsTheyStandInTheFiles) {
  File("a.csv", "age,city,seen\n10,rome,1 2 3\nx,bonn,7\n20,?,\n");
  File("b.csv", "age,city,seen\n30,rome,4\n");
  ColumnSet columns(SchemaOf(dataset_), 1);
  DatasetStats stats(dataset_);
  columns.set_observer(&stats);
  const auto parsed = [&](bool good) {
    columns.DropRow();
    good ? stats.KeepRecord() : stats.DropRecord();
  };
  EXPECT_THAT(
      ScanData(dataset_, &columns, parsed),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.csv:3: column age: \"x\"")));
  stats = DatasetStats(dataset_);
  dataset_.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  MU_ASSERT_OK_AND_ASSIGN(const ScannedData scanned, ScanData(dataset_, &columns, parsed));
  EXPECT_EQ(scanned.files, 2u);
  EXPECT_EQ(scanned.records, 3u);
  EXPECT_EQ(scanned.bad, 1u);
  const std::vector<ColumnSummary> summaries = stats.Summaries();
  EXPECT_EQ(summaries[0].mean, 20);  // before standardising
  EXPECT_EQ(summaries[0].count, 3u);
  EXPECT_EQ(summaries[1].count, 2u);
  EXPECT_EQ(summaries[1].missing, 1u);
  EXPECT_EQ(summaries[1].distinct, 1u);  // the bad record's city does not count
  EXPECT_EQ(summaries[2].count, 4u);     // before the sequence is cut
  EXPECT_EQ(summaries[2].max, 4);
}

// Odd ones of 25 bits: no float is one.
TEST_F(ScanTest, LargeIdsAreExact) {
  pb::CsvColumnProto* const id = dataset_.mutable_jsonl()->add_columns();  // instead of csv's
  id->set_name("id");
  id->set_kind(pb::CsvColumnProto::ID);
  File("a.jsonl", "{\"id\": 16777217}\n{\"id\": \"16777219\"}\n");
  ColumnSet columns(SchemaOf(dataset_), 1);
  DatasetStats stats(dataset_);
  columns.set_observer(&stats);
  const auto parsed = [&](bool good) {
    columns.DropRow();
    good ? stats.KeepRecord() : stats.DropRecord();
  };
  MU_ASSERT_OK_AND_ASSIGN(const ScannedData scanned, ScanData(dataset_, &columns, parsed));
  EXPECT_EQ(scanned.records, 2u);
  const ColumnSummary summary = stats.Summaries().at(0);
  EXPECT_EQ(summary.min, 16777217);
  EXPECT_EQ(summary.max, 16777219);
  EXPECT_EQ(summary.mean, 16777218);
  EXPECT_EQ(summary.stddev, 1);
}

// Where a field is empty the columns have a 0 and the bucket of missing values: neither counts.
TEST_F(ScanTest, EmptyFieldsOfCriteoAreMissing) {
  dataset_.mutable_criteo_tsv()->set_hash_buckets(1000);  // instead of csv's
  const std::string ids = "\t68fd1e64" + std::string(25, '\t');
  // -1 is there, and is 0 as well.
  File("a.tsv", "1\t0\t\t-1\t9" + std::string(9, '\t') + ids + "\n" +  //
                    "0" + std::string(13, '\t') + ids + "\n" + "0\t1\tx" + std::string(11, '\t') +
                    ids + "\n");
  dataset_.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  ColumnSet columns(SchemaOf(dataset_), 1);
  DatasetStats stats(dataset_);
  ASSERT_TRUE(stats.observes());
  columns.set_observer(&stats);
  MU_ASSERT_OK_AND_ASSIGN(const ScannedData scanned, ScanData(dataset_, &columns, [&](bool good) {
                            columns.DropRow();
                            good ? stats.KeepRecord() : stats.DropRecord();
                          }));
  EXPECT_EQ(scanned.records, 2u);
  EXPECT_EQ(scanned.bad, 1u);
  const std::vector<ColumnSummary> summaries = stats.Summaries();
  ASSERT_EQ(summaries.size(), 3u);
  EXPECT_EQ(summaries[0].name, "label");
  EXPECT_EQ(summaries[0].count, 2u);
  EXPECT_EQ(summaries[0].mean, 0.5);
  EXPECT_EQ(summaries[0].missing, 0u);
  EXPECT_EQ(summaries[1].name, "dense");
  EXPECT_EQ(summaries[1].count, 3u);
  EXPECT_EQ(summaries[1].missing, 2u * 13 - 3);
  EXPECT_NEAR(summaries[1].mean, std::log1p(9.0) / 3, 1e-6);
  EXPECT_EQ(summaries[1].distinct, 2u);
  EXPECT_EQ(summaries[2].name, "ids");
  EXPECT_EQ(summaries[2].count, 2u);
  EXPECT_EQ(summaries[2].missing, 2u * 25);
  EXPECT_EQ(summaries[2].distinct, 1u);
}

TEST_F(ScanTest, WithoutLabelsTheColumnsOfCriteoAreOthers) {
  dataset_.mutable_criteo_tsv()->set_hash_buckets(1000);
  dataset_.mutable_criteo_tsv()->set_unlabelled(true);
  File("a.tsv", "\t3" + std::string(13, '\t') + std::string(25, '\t') + "\n");
  ColumnSet columns(SchemaOf(dataset_), 1);
  DatasetStats stats(dataset_);
  columns.set_observer(&stats);
  MU_ASSERT_OK_AND_ASSIGN(const ScannedData scanned, ScanData(dataset_, &columns, [&](bool good) {
                            columns.DropRow();
                            good ? stats.KeepRecord() : stats.DropRecord();
                          }));
  EXPECT_EQ(scanned.records, 1u);
  const std::vector<ColumnSummary> summaries = stats.Summaries();
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].count, 1u);
  EXPECT_EQ(summaries[0].missing, 12u);
  EXPECT_EQ(summaries[1].missing, 26u);
}

TEST_F(ScanTest, SelectionHolds) {
  File("a.csv", "age,city,seen\n10,a,\n20,b,\n30,a,\n40,a,\n50,c,\n");
  dataset_.mutable_records()->set_modulo(2);
  dataset_.mutable_records()->add_keep(0);
  TextCounts counts(1);
  ColumnSet row(SchemaOf(dataset_), 1);
  row.set_observer(&counts);
  MU_ASSERT_OK_AND_ASSIGN(const ScannedData scanned, ScanData(dataset_, &row, [&](bool good) {
                            row.DropRow();
                            good ? counts.KeepRecord() : counts.DropRecord();
                          }));
  EXPECT_EQ(scanned.records, 3u);
  EXPECT_THAT(counts.Frequent(1), ElementsAre(Pair("a", 2), Pair("c", 1)));
}

TEST(TextCountsTest, FrequentTextsFirst) {
  TextCounts counts(0);
  for (const char* text : {"b", "a", "c", "b", "a", "b", "two\nlines"}) counts.OnText(0, text);
  counts.OnText(1, "other column");
  counts.OnNumber(0, 3);
  EXPECT_THAT(counts.Frequent(1), ::testing::IsEmpty()) << "the record may turn out to be bad";
  counts.KeepRecord();
  counts.OnText(0, "c");
  counts.OnNumber(0, 4);
  counts.DropRecord();
  counts.KeepRecord();
  EXPECT_EQ(counts.numbers(), 1u);
  EXPECT_THAT(counts.Frequent(1), ElementsAre(Pair("b", 3), Pair("a", 2), Pair("c", 1)));
  EXPECT_THAT(counts.Frequent(2), ElementsAre(Pair("b", 3), Pair("a", 2)));
  EXPECT_EQ(counts.with_line_end(), 1u);
}

}  // namespace
}  // namespace mu
