// Data and values: each record once, and the same bits however the work is cut.
#include <cstring>
#include <tuple>

#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

using testing::Numbers;
using testing::TestCluster;
using testing::TestClusterOptions;
using testing::WriteFile;

// A function that adds 1 to `visits` at the number of each record of its batch.
absl::StatusOr<Function> DefineVisit(Coordinator& c, const Dataset& data, const Variable& visits) {
  return c.DefineFunction("visit", [&](FunctionBuilder& f) {
    const Sym id = f.NextBatch(data)["id"];
    AssignAdd(visits, GatherGrad(Cast(OnesLike(id), kFloat32), id, Read(visits), 0));
    f.Return("records", Count(id));
  });
}

TEST(Conformance, EachRecordOncePerEpoch) {
  constexpr int64_t kRecords = 1000 + 37 + 5;
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 4, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  // Three uneven files, two of them packed, for four workers.
  const std::string directory = cluster->directory();
  WriteFile(directory + "/a.csv.gz", Numbers(0, 1000));
  WriteFile(directory + "/b.csv", Numbers(1000, 37));
  WriteFile(directory + "/c.csv.zst", Numbers(1037, 5));
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable visits,
      c.CreateVariable({.name = "visits", .shape = Shape({kRecords}), .trainable = false}));
  for (const auto& [shuffle, epochs] :
       std::vector<std::pair<uint64_t, uint32_t>>{{0, 1}, {0, 2}, {300, 1}, {300, 2}}) {
    SCOPED_TRACE(absl::StrCat("shuffle ", shuffle, ", epochs ", epochs));
    MU_ASSERT_OK(
        c.Assign(visits, Tensor::Of<float>(Shape({kRecords}), std::vector<float>(kRecords, 0))));
    DatasetSpec spec =
        Csv({directory + "/a.csv.gz", directory + "/b.csv", directory + "/c.csv.zst"});
    spec.Name("numbers")
        .Id("id", kRecords, 0)
        .Batch(8)
        .BlockRecords(16)
        .Shuffle(shuffle)
        .Epochs(epochs);
    MU_ASSERT_OK_AND_ASSIGN(const Dataset data, c.CreateDataset(spec));
    MU_ASSERT_OK_AND_ASSIGN(const Function visit, DefineVisit(c, data, visits));
    // More functions than there is data for, none of a size that divides it.
    std::vector<RemoteValue> values;
    for (int i = 0; i < 60; ++i) values.push_back(c.Schedule(visit, {.steps = 7}));
    MU_ASSERT_OK(c.Join());
    uint64_t samples = 0;
    bool ended_inside = false;
    for (const RemoteValue& value : values) {
      MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
      samples += result.samples();
      ended_inside |= result.end_of_data() && result.steps() > 0;
    }
    EXPECT_EQ(samples, epochs * static_cast<uint64_t>(kRecords));
    EXPECT_TRUE(ended_inside) << "the data should have ended within a packed function";
    MU_ASSERT_OK_AND_ASSIGN(const Tensor counts, c.Read(visits));
    EXPECT_THAT(counts.flat<float>(), ::testing::Each(static_cast<float>(epochs)));
  }
}

// The blocks that a program's data set has are smaller than these batches.
TEST(Conformance, BatchesAreAsLargeAsTheProgramSays) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({}));
  Coordinator& c = cluster->coordinator();
  const std::string file = cluster->directory() + "/numbers.csv";
  WriteFile(file, Numbers(0, 20'000));
  const auto batches = [&](uint32_t batch, uint64_t shuffle) -> absl::StatusOr<uint64_t> {
    MU_ASSIGN_OR_RETURN(
        const Dataset data,
        c.CreateDataset(Csv({file}).Id("id", 20'000, 0).Batch(batch).Shuffle(shuffle)));
    return c.BatchesInEpoch(data, 0);
  };
  for (const auto& [batch, shuffle, expected] :
       {std::tuple(8192u, 0u, 3u), {8192u, 1000u, 3u}, {20'000u, 0u, 1u}}) {
    SCOPED_TRACE(absl::StrCat("batch ", batch, ", shuffle ", shuffle));
    MU_ASSERT_OK_AND_ASSIGN(const uint64_t in_epoch, batches(batch, shuffle));
    EXPECT_EQ(in_epoch, expected);
  }
}

// Trains a small model for 12 steps; all that can be seen of it: losses, weights and rows.
absl::StatusOr<std::vector<float>> Train(int servers, uint32_t steps_per_function) {
  TestClusterOptions options;
  options.ps = servers;
  options.functions_in_flight = 1;
  options.default_optimizer = Adagrad{.learning_rate = 0.1f};
  MU_ASSIGN_OR_RETURN(auto cluster, TestCluster::Start(options));
  Coordinator& c = cluster->coordinator();
  WriteFile(cluster->directory() + "/data.csv", Numbers(0, 192));
  MU_ASSIGN_OR_RETURN(const Dataset data, c.CreateDataset(Csv({cluster->directory() + "/data.csv"})
                                                              .Id("id", 192, 0)
                                                              .Batch(16)
                                                              .BlockRecords(16)
                                                              .Shuffle(64)
                                                              .Epochs(1)));
  MU_ASSIGN_OR_RETURN(
      const EmbeddingTable items,
      c.CreateEmbeddingTable(
          {.name = "items", .rows = 192, .dim = 8, .initializer = Normal{.stddev = 0.5f}}));
  MU_ASSIGN_OR_RETURN(const Variable w, c.CreateVariable({.name = "w",
                                                          .shape = Shape({8, 4}),
                                                          .initializer = GlorotUniform(8, 4),
                                                          .partitioner = FixedShards{4}}));
  MU_ASSIGN_OR_RETURN(const Function step, c.DefineFunction("step", [&](FunctionBuilder& f) {
    const Sym id = f.NextBatch(data)["id"];
    const Sym out = Tanh(MatMul(EmbeddingLookup(items, id), w));
    const Sym target = Reshape(Cast(id, kFloat32) / 192.0f, Shape({-1, 1}));
    const Sym loss = ReduceMean(Square(out - target));
    f.Minimize(loss);
    f.Return("loss", loss);
  }));
  std::vector<float> seen;
  for (uint32_t first = 0; first < 12; first += steps_per_function) {
    MU_ASSIGN_OR_RETURN(const FunctionResult result,
                        c.Schedule(step, {.steps = steps_per_function}).Fetch());
    for (size_t i = 0; i < result.steps(); ++i) {
      MU_ASSIGN_OR_RETURN(const Tensor loss, result.Get(i, "loss"));
      seen.push_back(*loss.data<float>());
    }
  }
  MU_ASSIGN_OR_RETURN(const Tensor weights, c.Read(w));
  std::vector<int64_t> ids(192);
  for (int64_t i = 0; i < 192; ++i) ids[i] = i;
  MU_ASSIGN_OR_RETURN(const Tensor rows, c.ReadRows(items, ids));
  for (const Tensor* tensor : {&weights, &rows}) {
    seen.insert(seen.end(), tensor->data<float>(), tensor->data<float>() + tensor->elements());
  }
  return seen;
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

TEST(Conformance, MultiStepFunction) {
  MU_ASSERT_OK_AND_ASSIGN(const auto packed, Train(2, 12));
  MU_ASSERT_OK_AND_ASSIGN(const auto single, Train(2, 1));
  ASSERT_EQ(packed.size(), 12u + 32 + 192 * 8);
  EXPECT_LT(packed[11], packed[0]) << "it should learn something";
  ExpectSameBits(packed, single);
}

TEST(Conformance, SameValuesForAnyNumberOfServers) {
  MU_ASSERT_OK_AND_ASSIGN(const auto one, Train(1, 12));
  for (const auto& [servers, steps] : {std::pair(2, 12u), {3, 12u}, {3, 1u}}) {
    SCOPED_TRACE(absl::StrCat(servers, " servers, ", steps, " steps per function"));
    MU_ASSERT_OK_AND_ASSIGN(const auto more, Train(servers, steps));
    ExpectSameBits(one, more);
  }
}

}  // namespace
}  // namespace mu
