// Public data sets as they come, where they are at hand (MUSTER_DATA): what the formats' options
// are for.
#include <cstdlib>
#include <numeric>

#include "tests/worker/data/data_test_util.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

class RealDataTest : public DataTest {
 protected:
  // False (and a skipped test) without the file.
  bool Find(const std::string& name, pb::DatasetProto* dataset) {
    const char* root = std::getenv("MUSTER_DATA");
    const std::string path = JoinPath(root != nullptr ? root : "", name);
    dataset->add_files(path);
    dataset->set_batch_size(1'000'000);
    dataset->set_block_records(1000);
    return root != nullptr && FileExists(path);
  }
  static double Mean(const std::vector<float>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
};

void AddAdultColumns(pb::DatasetProto* dataset) {
  pb::CsvProto* csv = dataset->mutable_csv();
  csv->set_trim(true);
  csv->add_missing("?");
  AddColumn(dataset, "age", pb::CsvColumnProto::NUMBER, 0);
  AddColumn(dataset, "workclass", pb::CsvColumnProto::HASH, 1);
  pb::CsvColumnProto* label = AddColumn(dataset, "income", pb::CsvColumnProto::LABEL, 14);
  label->clear_positive();
  label->add_positive(">50K");
  label->add_positive(">50K.");
}

TEST_F(RealDataTest, Adult) {
  pb::DatasetProto train;
  if (!Find("adult/adult.data.gz", &train)) GTEST_SKIP() << "no adult data below MUSTER_DATA";
  AddAdultColumns(&train);
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(train).get()));
  EXPECT_EQ(data->records(), 32561u);
  EXPECT_NEAR(Mean(Values<float>(data->MakeBatch(0), "income")), 7841.0 / 32561, 1e-9);

  pb::DatasetProto test;
  ASSERT_TRUE(Find("adult/adult.test.gz", &test));
  AddAdultColumns(&test);
  EXPECT_THAT(
      ReadFileWhole(Reader(test).get()).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("adult.test.gz:1: column age")));
  test.set_on_bad_record(pb::ON_BAD_RECORD_SKIP);
  MU_ASSERT_OK_AND_ASSIGN(const auto rest, ReadFileWhole(Reader(test).get()));
  EXPECT_EQ(rest->records(), 16281u);
  EXPECT_EQ(rest->bad_records(), 1u);
  EXPECT_NEAR(Mean(Values<float>(rest->MakeBatch(0), "income")), 3846.0 / 16281, 1e-9);
}

TEST_F(RealDataTest, MovielensSplitByRecord) {
  uint64_t records = 0;
  double sum = 0;
  for (const bool test : {false, true}) {
    pb::DatasetProto dataset;
    if (!Find("movielens/ratings.csv.gz", &dataset))
      GTEST_SKIP() << "no movielens data below MUSTER_DATA";
    dataset.mutable_csv()->set_header(true);
    AddColumn(&dataset, "userId", pb::CsvColumnProto::ID);
    AddColumn(&dataset, "rating", pb::CsvColumnProto::NUMBER);
    dataset.mutable_records()->set_modulo(10);
    for (uint32_t k = 0; k < 10; ++k) {
      if ((k == 9) == test) dataset.mutable_records()->add_keep(k);
    }
    MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
    EXPECT_EQ(data->records(), test ? 10083u : 90753u);
    records += data->records();
    sum += Mean(Values<float>(data->MakeBatch(0), "rating")) * data->records();
  }
  EXPECT_EQ(records, 100836u);
  EXPECT_NEAR(sum / static_cast<double>(records), 3.501557, 1e-5);
}

TEST_F(RealDataTest, MoviesWithQuotedTitlesAndLists) {
  pb::DatasetProto dataset;
  if (!Find("movielens/movies.csv.gz", &dataset))
    GTEST_SKIP() << "no movielens data below MUSTER_DATA";
  dataset.mutable_csv()->set_header(true);
  AddColumn(&dataset, "movieId", pb::CsvColumnProto::ID);
  AddColumn(&dataset, "genres", pb::CsvColumnProto::HASH)->set_separator("|");
  MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(Reader(dataset).get()));
  EXPECT_EQ(data->records(), 9742u);
  EXPECT_EQ(Values<int64_t>(data->MakeBatch(0), "genres.values").size(), 22084u);
}

}  // namespace
}  // namespace mu
