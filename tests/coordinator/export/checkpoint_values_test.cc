// Values of a checkpoint by name: against the values that were written and the initializer.
#include "coordinator/export/checkpoint_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "common/sharding/initializer.h"
#include "tests/coordinator/export/checkpoint_maker.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::CheckpointMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointValuesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(auto directory, TempDirectory::Create("checkpoint_values"));
    directory_ = std::make_unique<TempDirectory>(std::move(directory));
  }
  const std::string& path() const { return directory_->path(); }

  absl::StatusOr<CheckpointValues> WriteAndOpen(CheckpointMaker* maker) {
    MU_RETURN_IF_ERROR(maker->Write(path()));
    return CheckpointValues::Open(path());
  }

  template <typename T>
  static std::vector<T> ReadAll(const CheckpointValues& checkpoint, const std::string& name) {
    const StoredValue* value = checkpoint.Find(name);
    EXPECT_NE(value, nullptr) << name;
    std::string all;
    MU_EXPECT_OK(checkpoint.Read(*value, [&](absl::string_view bytes) {
      all.append(bytes.data(), bytes.size());
      return absl::OkStatus();
    }));
    EXPECT_EQ(all.size(), value->bytes());
    std::vector<T> values(all.size() / sizeof(T));
    std::memcpy(values.data(), all.data(), all.size());
    return values;
  }
  static absl::Status ReadStatus(const CheckpointValues& checkpoint, const std::string& name) {
    return checkpoint.Read(*checkpoint.Find(name),
                           [](absl::string_view) { return absl::OkStatus(); });
  }

  std::unique_ptr<TempDirectory> directory_;
};

TEST_F(CheckpointValuesTest, VariablesAreTheirPartitionsOneAfterTheOther) {
  CheckpointMaker maker(2);
  std::vector<float> weights(70);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  maker.AddVariable({.name = "deep/w", .shape = {7, 10}, .partitioner = FixedShards{3}},
                    Tensor::Of<float>({7, 10}, weights));
  maker.AddVariable({.name = "step", .dtype = kInt64}, Tensor::Scalar<int64_t>(-3));
  maker.AddVariable({.name = "counts", .shape = {2}, .dtype = kInt32},
                    Tensor::Of<int32_t>({2}, {4, 5}));
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, WriteAndOpen(&maker));
  EXPECT_EQ(ReadAll<float>(checkpoint, "deep/w"), weights);
  EXPECT_THAT(ReadAll<int64_t>(checkpoint, "step"), ElementsAre(-3));
  EXPECT_THAT(ReadAll<int32_t>(checkpoint, "counts"), ElementsAre(4, 5));
  EXPECT_EQ(checkpoint.Find("deep"), nullptr);
}

TEST_F(CheckpointValuesTest, VariablesThatNoFileHasBegin) {
  CheckpointMaker maker(1);
  const pb::VariableProto w =
      maker.Define({.name = "w", .shape = {3, 2}, .initializer = Normal{1.0f, 2.0f}});
  maker.Define({.name = "n", .shape = {2}, .dtype = kInt64, .initializer = Constant{7}});
  maker.Define({.name = "i", .shape = {1, 2}, .dtype = kInt32, .initializer = Constant{8}});
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, WriteAndOpen(&maker));
  std::vector<float> expected(6);
  const RowInitializer initializer(w.initializer(), "w");
  for (uint64_t row = 0; row < 3; ++row) initializer.FillRow(row, &expected[row * 2], 2);
  EXPECT_EQ(ReadAll<float>(checkpoint, "w"), expected);
  EXPECT_THAT(ReadAll<int64_t>(checkpoint, "n"), ElementsAre(7, 7));
  EXPECT_THAT(ReadAll<int32_t>(checkpoint, "i"), ElementsAre(8, 8));
}

// A table of several pieces in each partition, of which every third row is there.
TEST_F(CheckpointValuesTest, TablesHaveAllRowsByIdWithInitialValuesWhereNoneWasWritten) {
  constexpr int64_t kRows = 5000, kDim = 1024;  // 20 MB: three pieces
  std::map<int64_t, std::vector<float>> rows;
  for (int64_t id = 0; id < kRows; id += 3)
    rows[id] = std::vector<float>(kDim, static_cast<float>(id));
  CheckpointMaker maker(3);
  maker.AddTable(
      {.name = "items", .rows = kRows, .dim = kDim, .initializer = Uniform{-1, 1}, .partitions = 7},
      rows);
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, WriteAndOpen(&maker));
  const std::vector<float> all = ReadAll<float>(checkpoint, "items");
  const RowInitializer initializer(maker.manifest.tables(0).initializer(), "items");
  std::vector<float> initial(kDim);
  for (int64_t id = 0; id < kRows; ++id) {
    initializer.FillRow(static_cast<uint64_t>(id), initial.data(), kDim);
    const std::vector<float>& expected = id % 3 == 0 ? rows[id] : initial;
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), all.begin() + id * kDim)) << id;
  }
}

TEST_F(CheckpointValuesTest, TablesWithFewerRowsThanPartitions) {
  CheckpointMaker maker(1);
  maker.AddTable({.name = "t", .rows = 2, .dim = 1, .partitions = 64}, {{1, {4.0f}}});
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, WriteAndOpen(&maker));
  EXPECT_THAT(ReadAll<float>(checkpoint, "t"), ElementsAre(0.0f, 4.0f));
}

TEST_F(CheckpointValuesTest, IdsOutOfPlaceAreDamage) {
  for (const std::vector<int64_t>& ids :
       {std::vector<int64_t>{3, 2}, {3, 3}, {-1, 2}, {2, 10}, {10, 11}}) {
    CheckpointMaker maker(1);
    pb::TableProto* table = maker.manifest.add_tables();
    *table =
        EmbeddingTableSpec{.name = "t", .rows = 10, .dim = 1, .partitions = 1}.ToProto().value();
    const std::vector<float> values = {1, 2};
    maker.Add(0, {TableTensorName("t", 0, "ids"), kInt64, {2}},
              std::string(reinterpret_cast<const char*>(ids.data()), 16));
    maker.Add(0, {TableTensorName("t", 0, "values"), kFloat32, {2, 1}},
              std::string(reinterpret_cast<const char*>(values.data()), 8));
    MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, WriteAndOpen(&maker));
    const absl::Status status = ReadStatus(checkpoint, "t");
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << ids[0] << " " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("tables/t/0/ids"));
  }
}

TEST_F(CheckpointValuesTest, TensorsThatDoNotFitTheManifestAreDamage) {
  CheckpointMaker maker(1);
  maker.Define({.name = "w", .shape = {3}});
  maker.Add(0, {VariableTensorName("w", 0, "value"), kFloat32, {2}}, std::string(8, '\0'));
  *maker.manifest.add_tables() =
      EmbeddingTableSpec{.name = "t", .rows = 10, .dim = 1, .partitions = 1}.ToProto().value();
  maker.Add(0, {TableTensorName("t", 0, "ids"), kInt64, {1}}, std::string(8, '\0'));
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, WriteAndOpen(&maker));
  EXPECT_EQ(ReadStatus(checkpoint, "w").code(), absl::StatusCode::kDataLoss);
  const absl::Status no_values = ReadStatus(checkpoint, "t");
  EXPECT_EQ(no_values.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(no_values.message()), HasSubstr("tables/t/0/values"));
}

TEST_F(CheckpointValuesTest, DamagedFilesAndManifests) {
  CheckpointMaker maker(1);
  maker.AddVariable({.name = "w"}, Tensor::Scalar<float>(1));
  MU_ASSERT_OK(maker.Write(path()));
  const std::string file = path() + "/ps-0.safetensors";
  MU_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(file));
  bytes.back() ^= 1;
  MU_ASSERT_OK(WriteFileAtomic(file, bytes));
  const auto damaged = CheckpointValues::Open(path());
  EXPECT_EQ(damaged.status().code(), absl::StatusCode::kDataLoss) << damaged.status();
  EXPECT_THAT(std::string(damaged.status().message()), HasSubstr("ps-0.safetensors"));

  CheckpointMaker strange(1);
  strange.manifest.add_tables()->set_name("t");  // without rows
  EXPECT_EQ(WriteAndOpen(&strange).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckpointValues::Open(path() + "/none").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace mu
