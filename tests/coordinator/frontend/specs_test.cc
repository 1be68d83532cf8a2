#include "coordinator/frontend/specs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "coordinator/frontend/paper_factory.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StatusIs;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(VariableSpec, ToProto) {
  const VariableSpec spec{.name = "w",
                          .shape = {3, 2},
                          .initializer = Uniform{-0.5f, 0.5f},
                          .optimizer = Adagrad{.learning_rate = 0.05f, .initial_accumulator = 0.1f},
                          .partitioner = FixedShards{2}};
  MU_ASSERT_OK_AND_ASSIGN(const pb::VariableProto proto, spec.ToProto());
  EXPECT_EQ(proto.name(), "w");
  EXPECT_EQ(Shape(proto.shape()), Shape({3, 2}));
  EXPECT_TRUE(proto.trainable());
  EXPECT_FLOAT_EQ(proto.initializer().uniform().high(), 0.5f);
  EXPECT_FLOAT_EQ(proto.optimizer().adagrad().learning_rate(), 0.05f);
  EXPECT_EQ(proto.partitioner().fixed_shards(), 2u);
}

TEST(VariableSpec, Defaults) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::VariableProto proto,
                          (VariableSpec{.name = "step", .dtype = kInt64}.ToProto()));
  EXPECT_FALSE(proto.trainable());  // an integer
  EXPECT_FALSE(proto.has_optimizer());
  EXPECT_FALSE(proto.has_partitioner());
  EXPECT_EQ(proto.initializer().kind_case(), pb::InitializerProto::KIND_NOT_SET);
  EXPECT_EQ(proto.shape().dims_size(), 0);
}

TEST(VariableSpec, Refusals) {
  EXPECT_THAT(VariableSpec{}.ToProto(), StatusIs(kInvalid, HasSubstr("name must not be empty")));
  EXPECT_THAT((VariableSpec{.name = "w", .shape = {-1}}.ToProto()),
              StatusIs(kInvalid, HasSubstr("\"w\": shape [?]")));
  EXPECT_THAT((VariableSpec{.name = "w", .shape = {0}}.ToProto()),
              StatusIs(kInvalid, HasSubstr("above 0")));
  EXPECT_THAT((VariableSpec{.name = "w", .shape = {1 << 30, 1 << 30}}.ToProto()),
              StatusIs(kInvalid, HasSubstr("2^40")));
  EXPECT_THAT((VariableSpec{.name = "w", .dtype = kBool}.ToProto()),
              StatusIs(kInvalid, HasSubstr("got bool")));
  EXPECT_THAT((VariableSpec{.name = "w", .dtype = kInt32, .optimizer = Sgd{}}.ToProto()),
              StatusIs(kInvalid, HasSubstr("takes no optimizer")));
  EXPECT_THAT((VariableSpec{.name = "w", .optimizer = Sgd{.learning_rate = -1}}.ToProto()),
              StatusIs(kInvalid, HasSubstr("learning_rate must be above 0, got -1")));
  EXPECT_THAT((VariableSpec{.name = "w", .optimizer = Sgd{std::numeric_limits<float>::quiet_NaN()}}
                   .ToProto()),
              StatusIs(kInvalid, HasSubstr("learning_rate")));
  EXPECT_THAT(
      (VariableSpec{.name = "w", .optimizer = Adagrad{.initial_accumulator = -1}}.ToProto()),
      StatusIs(kInvalid, HasSubstr("initial_accumulator")));
  EXPECT_THAT((VariableSpec{.name = "w", .initializer = Uniform{1, 0}}.ToProto()),
              StatusIs(kInvalid, HasSubstr("low")));
  EXPECT_THAT((VariableSpec{.name = "w", .initializer = Constant{INFINITY}}.ToProto()),
              StatusIs(kInvalid, HasSubstr("finite")));
  EXPECT_THAT((VariableSpec{.name = "w", .partitioner = FixedShards{0}}.ToProto()),
              StatusIs(kInvalid, HasSubstr("partitioner")));
}

TEST(VariableSpec, AMovingPartIsOfFloatsThatAreNotTrained) {
  const VariableSpec good{.name = "mean", .trainable = false, .moving_part = 0.25f};
  MU_ASSERT_OK_AND_ASSIGN(const pb::VariableProto proto, good.ToProto());
  EXPECT_EQ(proto.moving_part(), 0.25f);
  EXPECT_THAT((VariableSpec{.name = "mean", .moving_part = 0.25f}.ToProto()),
              StatusIs(kInvalid, HasSubstr("\"mean\": a variable with moving_part takes no")));
  EXPECT_THAT((VariableSpec{.name = "n", .dtype = kInt64, .moving_part = 0.25f}.ToProto()),
              StatusIs(kInvalid, HasSubstr("moving_part needs dtype float32")));
  for (const float part : {-0.25f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    VariableSpec bad = good;
    bad.moving_part = part;
    EXPECT_THAT(bad.ToProto(), StatusIs(kInvalid, HasSubstr("above 0 and at most 1"))) << part;
  }
}

TEST(EmbeddingTableSpec, ToProtoAndRefusals) {
  MU_ASSERT_OK_AND_ASSIGN(
      const pb::TableProto proto,
      (EmbeddingTableSpec{.name = "t", .rows = 10'000'000, .dim = 16, .optimizer = Sgd{0.5f}}
           .ToProto()));
  EXPECT_EQ(proto.rows(), 10'000'000u);
  EXPECT_EQ(proto.dim(), 16u);
  EXPECT_FLOAT_EQ(proto.optimizer().sgd().learning_rate(), 0.5f);
  EXPECT_THAT((EmbeddingTableSpec{.name = "t", .dim = 1}.ToProto()),
              StatusIs(kInvalid, HasSubstr("rows must be above 0")));
  EXPECT_THAT((EmbeddingTableSpec{.name = "t", .rows = 1}.ToProto()),
              StatusIs(kInvalid, HasSubstr("dim must be above 0")));
  EXPECT_THAT((EmbeddingTableSpec{.rows = 1, .dim = 1}.ToProto()),
              StatusIs(kInvalid, HasSubstr("name")));
}

// What servers and workers refuse is refused before it is part of a job, which could not take a
// checkpoint with it any more.
TEST(VariableSpec, RefusesWhatServersRefuse) {
  struct Case {
    VariableSpec spec;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{.name = "w", .dtype = kInt32, .initializer = Uniform{}}, "needs type float32, not int32"},
      {{.name = "w", .dtype = kInt64, .initializer = Uniform{}}, "needs type float32, not int64"},
      {{.name = "w", .dtype = kInt32, .initializer = Normal{}}, "needs type float32, not int32"},
      {{.name = "w", .dtype = kInt64, .initializer = Normal{}}, "needs type float32, not int64"},
      {{.name = "w", .dtype = kInt32, .initializer = Constant{0.5f}}, "0.5 is not whole"},
      {{.name = "w", .dtype = kInt64, .initializer = Constant{0.5f}}, "0.5 is not whole"},
      {{.name = "w", .dtype = kInt32, .initializer = Constant{3e9f}}, "within 31 bits"},
      {{.name = "w", .dtype = kInt64, .initializer = Constant{3e9f}}, "within 31 bits"},
      {{.name = "w", .initializer = Uniform{-3e38f, 3e38f}}, "range is not a finite number"},
      {{.name = "w", .shape = {10}, .initializer = Uniform{-3e38f, 3e38f}, .trainable = false},
       "range is not a finite number"}};
  for (const Case& c : cases) {
    EXPECT_THAT(c.spec.ToProto(),
                StatusIs(kInvalid, AllOf(HasSubstr("variable \"w\": "), HasSubstr(c.says))));
  }
}

TEST(VariableSpec, IntegersTakeWholeConstants) {
  for (const DType dtype : {kInt32, kInt64}) {
    for (const float value : {-3.0f, 0.0f, 7.0f, 2147483520.0f}) {
      MU_EXPECT_OK((VariableSpec{.name = "w", .dtype = dtype, .initializer = Constant{value}}
                        .ToProto()
                        .status()));
    }
  }
}

TEST(EmbeddingTableSpec, RefusesWhatServersRefuse) {
  struct Case {
    EmbeddingTableSpec spec;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{.name = "t", .rows = 1, .dim = 65'537}, "dim must be at most 65536, got 65537"},
      {{.name = "t", .rows = 1, .dim = 2'147'483'647}, "dim must be at most 65536"},
      {{.name = "t", .rows = 1, .dim = (int64_t{1} << 32) + 1}, "got 4294967297"},
      {{.name = "t", .rows = 1, .dim = 1, .partitions = (1 << 20) + 1},
       "1 to 1048576 are possible"},
      {{.name = "t", .rows = int64_t{1} << 62, .dim = 1}, "at most 4611686018427387903"},
      {{.name = "t", .rows = std::numeric_limits<int64_t>::max(), .dim = 1},
       "at most 4611686018427387903"},
      {{.name = "t", .rows = 1, .dim = 1, .initializer = Uniform{-3e38f, 3e38f}},
       "range is not a finite number"},
      {{.name = "t", .rows = 10'000'000'000'000'000, .dim = 1, .partitions = 64},
       "fewer rows or columns, or more partitions"},
      // Too large for any number of partitions.
      {{.name = "t", .rows = (int64_t{1} << 48) + 1, .dim = 65'536}, "it is too large"}};
  for (const Case& c : cases) {
    EXPECT_THAT(c.spec.ToProto(),
                StatusIs(kInvalid, AllOf(HasSubstr("embedding table \"t\": "), HasSubstr(c.says))));
  }
}

TEST(EmbeddingTableSpec, LimitsThemselvesArePossible) {
  const EmbeddingTableSpec wide{
      .name = "t", .rows = int64_t{1} << 48, .dim = 65'536, .optimizer = Sgd{}};
  const EmbeddingTableSpec long_one{
      .name = "t", .rows = (int64_t{1} << 62) - 1, .dim = 1, .partitions = 1 << 20};
  for (const EmbeddingTableSpec& spec : {wide, long_one}) MU_EXPECT_OK(spec.ToProto().status());
}

// Servers decide how a table is cut that says no number, and so how large it may be.
TEST(PaperFactory, KnowsWhatItsServersCanHold) {
  const EmbeddingTableSpec large{.name = "t", .rows = 10'000'000'000'000'000, .dim = 1};
  EXPECT_THAT(PaperFactory(Sgd{}, 2).CreateEmbeddingTable(large),
              StatusIs(kInvalid, AllOf(HasSubstr("embedding table \"t\": "),
                                       HasSubstr("one of 64, has 156250000000000 rows"))));
  MU_EXPECT_OK(PaperFactory(Sgd{}, 100).CreateEmbeddingTable(large).status());
  MU_EXPECT_OK(PaperFactory(Sgd{}).CreateEmbeddingTable(large).status());
  EmbeddingTableSpec cut = large;
  cut.partitions = 1024;
  MU_EXPECT_OK(PaperFactory(Sgd{}, 2).CreateEmbeddingTable(cut).status());
  // With the sums of Adagrad a row is twice as long.
  const EmbeddingTableSpec half{.name = "t", .rows = int64_t{1} << 50, .dim = 1};
  MU_EXPECT_OK(PaperFactory(Sgd{}, 2).CreateEmbeddingTable(half).status());
  EXPECT_THAT(PaperFactory(Adagrad{}, 2).CreateEmbeddingTable(half),
              StatusIs(kInvalid, HasSubstr("rows of 8 bytes")));
}

TEST(Initializers, Glorot) {
  const Uniform limits = GlorotUniform(10, 14);
  EXPECT_FLOAT_EQ(limits.high, 0.5f);
  EXPECT_FLOAT_EQ(limits.low, -0.5f);
}

TEST(DatasetSpec, Criteo) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::DatasetProto proto, CriteoTsv({"a", "b"}, 50)
                                                            .Name("train")
                                                            .Batch(512)
                                                            .Shuffle(1000)
                                                            .Records(10, {0, 1})
                                                            .Epochs(2)
                                                            .Seed(7)
                                                            .SkipBadRecords()
                                                            .ToProto());
  EXPECT_EQ(proto.name(), "train");
  EXPECT_EQ(proto.criteo_tsv().hash_buckets(), 50);
  EXPECT_EQ(proto.files_size(), 2);
  EXPECT_EQ(proto.batch_size(), 512u);
  EXPECT_EQ(proto.shuffle_records(), 1000u);
  EXPECT_EQ(proto.records().keep_size(), 2);
  EXPECT_EQ(proto.epochs(), 2u);
  EXPECT_EQ(proto.seed(), 7u);
  EXPECT_EQ(proto.on_bad_record(), pb::ON_BAD_RECORD_SKIP);
  EXPECT_GT(proto.block_records(), 0u);
}

TEST(DatasetSpec, CsvColumns) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::DatasetProto proto, Csv({"a"})
                                                            .Header()
                                                            .Delimiter(";")
                                                            .Missing({"?"})
                                                            .Trim()
                                                            .Number("age")
                                                            .Id("user", 611)
                                                            .Hash("job", 100, 4)
                                                            .Label("income", {">50K"})
                                                            .Batch(4)
                                                            .ToProto());
  ASSERT_EQ(proto.csv().columns_size(), 4);
  EXPECT_EQ(proto.csv().columns(1).buckets(), 611);
  EXPECT_EQ(proto.csv().columns(2).index(), 4);
  EXPECT_EQ(proto.csv().columns(3).kind(), pb::CsvColumnProto::LABEL);
  EXPECT_TRUE(proto.csv().header());
}

TEST(DatasetSpec, Refusals) {
  EXPECT_THAT(CriteoTsv({"a"}).ToProto(), StatusIs(kInvalid, HasSubstr("add .Batch(n)")));
  EXPECT_THAT(CriteoTsv({}).Batch(1).ToProto(), StatusIs(kInvalid, HasSubstr("no files")));
  EXPECT_THAT(CriteoTsv({"a"}, 0).Batch(1).ToProto(),
              StatusIs(kInvalid, HasSubstr("hash_buckets")));
  EXPECT_THAT(CriteoTsv({"a"}).Batch(1).Header().ToProto(),
              StatusIs(kInvalid, HasSubstr("Header is a setting of csv only")));
  EXPECT_THAT(CriteoTsv({"a"}).Batch(1).Records(10, {}).ToProto(),
              StatusIs(kInvalid, HasSubstr("keeps nothing")));
  EXPECT_THAT(CriteoTsv({"a"}).Batch(1).Records(10, {10}).ToProto(),
              StatusIs(kInvalid, HasSubstr("10 modulo 10")));
  EXPECT_THAT(Csv({"a"}).Batch(1).ToProto(), StatusIs(kInvalid, HasSubstr("no column")));
  EXPECT_THAT(Csv({"a"}).Batch(1).Number("x").ToProto(),
              StatusIs(kInvalid, HasSubstr("have no header")));
  EXPECT_THAT(Csv({"a"}).Batch(1).Number("x", 0).Id("x", 0, 1).ToProto(),
              StatusIs(kInvalid, HasSubstr("two columns")));
  EXPECT_THAT(Csv({"a"}).Batch(1).Hash("x", 0, 0).ToProto(),
              StatusIs(kInvalid, HasSubstr("buckets above 0")));
  EXPECT_THAT(Csv({"a"}).Batch(1).Label("x", {}, 0).ToProto(),
              StatusIs(kInvalid, HasSubstr("positive")));
  pb::CsvColumnProto column;
  column.set_name("x");
  column.set_field("X");
  EXPECT_THAT(Csv({"a"}).Batch(1).Column(column).ToProto(),
              StatusIs(kInvalid, HasSubstr("names a field, but the files have no header")));
  MU_EXPECT_OK(Csv({"a"}).Header().Batch(1).Column(column).ToProto().status());
  column.set_index(3);
  EXPECT_THAT(Csv({"a"}).Header().Batch(1).Column(column).ToProto(),
              StatusIs(kInvalid, HasSubstr("both a field's name and an index")));
  EXPECT_THAT(Csv({"a"}).Batch(1).Delimiter("::").Number("x", 0).ToProto(),
              StatusIs(kInvalid, HasSubstr("one character")));
}

}  // namespace
}  // namespace mu
