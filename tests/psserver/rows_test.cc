// Parts of variables and tables: rows that are read, assigned and added to, products with rows that
// stay on their servers, and looks at all rows of a table. Over the transport in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "tests/psserver/cluster.h"
#include "tests/psserver/frames.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::PsCluster;
using ::mu::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kSeen = 3, kKernel = 5, kItems = 100;
constexpr int64_t kRows = 300, kColumns = 700;  // of the kernel
constexpr size_t kDim = 16;                     // of items

class RowsTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  RowsTest() : cluster_(GetParam()) { MU_EXPECT_OK(cluster_.Configure()); }

  std::vector<float> Kernel() {
    auto value = cluster_.admin().ReadVariable(cluster_.context(), "dense/kernel");
    MU_EXPECT_OK(value);
    const auto values = value->flat<float>();
    return {values.begin(), values.end()};
  }
  absl::Status AssignRows(uint64_t place, const std::string& name, bool table,
                          const std::vector<int64_t>& rows, const Tensor& value) {
    return cluster_.admin().AssignRows(cluster_.context(), FunctionId(place), name, table, rows,
                                       value);
  }
  std::vector<float> Items(const std::vector<int64_t>& ids) {
    std::vector<float> values(ids.size() * kDim);
    PsSession session = cluster_.Session(0, /*read_only=*/true);
    const RowsRead read{kItems, ids, values.data()};
    MU_EXPECT_OK(session.Pull({}, {&read, 1}));
    return values;
  }
  std::map<int64_t, std::vector<float>> Scan(uint32_t most, int* calls = nullptr) {
    std::map<int64_t, std::vector<float>> found;
    PsAdmin::TablePosition position;
    while (!position.end) {
      auto rows = cluster_.admin().Scan(cluster_.context(), "items", most, &position);
      MU_EXPECT_OK(rows);
      if (!rows.ok()) break;
      EXPECT_LE(rows->ids.size(), most);
      if (calls != nullptr) ++*calls;
      for (size_t i = 0; i < rows->ids.size(); ++i) {
        const float* row = rows->values.data() + i * kDim;
        EXPECT_TRUE(found.emplace(rows->ids[i], std::vector<float>(row, row + kDim)).second);
      }
    }
    return found;
  }

  PsCluster cluster_;
};

Tensor Filled(DType dtype, const Shape& shape, float value) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (dtype == kFloat32) tensor.data<float>()[i] = value + static_cast<float>(i);
    if (dtype == kInt32) tensor.data<int32_t>()[i] = static_cast<int32_t>(value) + i;
  }
  return tensor;
}

TEST_P(RowsTest, SomeRowsOfAVariableAreThoseOfTheWhole) {
  const std::vector<float> whole = Kernel();
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
           {0, kRows}, {0, 1}, {kRows - 1, 1}, {90, 120}, {5, 0}}) {
    std::vector<float> rows(static_cast<size_t>(count * kColumns));
    PsSession session = cluster_.Session();
    const VariableRead read{kKernel, rows.data(), first, count};
    MU_ASSERT_OK(session.Pull({&read, 1}, {}));
    EXPECT_TRUE(std::equal(rows.begin(), rows.end(), whole.begin() + first * kColumns)) << first;
  }
  for (const auto& [first, count] :
       std::vector<std::pair<int64_t, int64_t>>{{-1, 1}, {kRows, 1}, {200, 101}}) {
    std::vector<float> rows(static_cast<size_t>(count * kColumns));
    PsSession session = cluster_.Session();
    const VariableRead read{kKernel, rows.data(), first, count};
    EXPECT_THAT(session.Pull({&read, 1}, {}), HasCode(absl::StatusCode::kOutOfRange)) << first;
  }
}

TEST_P(RowsTest, AVariableIsReadInPieces) {
  const auto read = [&](const char* name, uint64_t piece_bytes) {
    auto value = cluster_.admin().ReadVariable(cluster_.context(), name, piece_bytes);
    MU_EXPECT_OK(value);
    return value.ok() ? value->ToProto().SerializeAsString() : "";
  };
  for (const char* name : {"dense/kernel", "seen", "bias", "steps"})
    EXPECT_EQ(read(name, 1 << 30), read(name, 7 * kColumns * sizeof(float))) << name;
}

TEST_P(RowsTest, RowsOfAVariableAreAssignedOnce) {
  std::vector<float> expected = Kernel();
  const std::vector<int64_t> rows = {299, 0, 150};
  const Tensor value = Filled(kFloat32, {3, kColumns}, 10);
  for (int i = 0; i < 2; ++i) {  // a repeat
    MU_ASSERT_OK(AssignRows(1, "dense/kernel", false, rows, value));
    for (size_t r = 0; r < rows.size(); ++r) {
      std::copy_n(value.data<float>() + r * kColumns, kColumns,
                  expected.begin() + rows[r] * kColumns);
    }
    EXPECT_EQ(Kernel(), expected);
  }
  MU_ASSERT_OK(AssignRows(2, "dense/kernel", false, {0}, Filled(kFloat32, {1, kColumns}, 5)));
  MU_ASSERT_OK(AssignRows(1, "dense/kernel", false, rows, value)) << "a late copy";
  EXPECT_EQ(Kernel()[0], 5);
  MU_ASSERT_OK(AssignRows(3, "seen", false, {3, 1}, Filled(kInt32, {2}, 70)));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor seen,
                          cluster_.admin().ReadVariable(cluster_.context(), "seen"));
  EXPECT_THAT(seen.flat<int32_t>(), ElementsAre(7, 71, 7, 70));
}

TEST_P(RowsTest, RowsOfATableAreAssignedOnceAndCreated) {
  const std::vector<int64_t> ids = {999, 3, 500};
  const std::vector<float> untouched = Items({4});
  const Tensor value = Filled(kFloat32, {3, static_cast<int64_t>(kDim)}, 1);
  for (int i = 0; i < 2; ++i) {
    MU_ASSERT_OK(AssignRows(1, "items", true, ids, value));
    const auto flat = value.flat<float>();
    EXPECT_EQ(Items(ids), std::vector<float>(flat.begin(), flat.end()));
  }
  EXPECT_EQ(Items({4}), untouched);
  EXPECT_EQ(Scan(10).size(), 3u);
  // A gradient goes on from the assigned value, with slots as new rows have them.
  PsSession session = cluster_.Session(5);
  session.BeginStep(0);
  const std::vector<int64_t> id = {3};
  const std::vector<float> gradient(kDim, 1.0f);
  const RowsWrite write{kItems, id, gradient.data()};
  MU_ASSERT_OK(session.Push({}, {&write, 1}));
  EXPECT_NEAR(Items({3})[0], 17 - 0.05 / std::sqrt(1.1), 1e-5);
}

TEST_P(RowsTest, WhatCannotBeAssignedIsRefusedAndChangesNothing) {
  const std::vector<float> before = Kernel();
  const auto refused = [&](const std::string& name, bool table, const std::vector<int64_t>& rows,
                           const Tensor& value, absl::StatusCode code) {
    EXPECT_THAT(AssignRows(1, name, table, rows, value), HasCode(code)) << name;
  };
  const Tensor one = Filled(kFloat32, {1, kColumns}, 1), two = Filled(kFloat32, {2, kColumns}, 1);
  const auto invalid = absl::StatusCode::kInvalidArgument;
  refused("dense/kernel", false, {300}, one, absl::StatusCode::kOutOfRange);
  refused("dense/kernel", false, {-1}, one, absl::StatusCode::kOutOfRange);
  refused("dense/kernel", false, {7, 7}, two, invalid);
  refused("dense/kernel", false, {7}, two, invalid);
  refused("bias", false, {0}, Filled(kFloat32, {1}, 1), invalid);
  refused("items", false, {0}, one, absl::StatusCode::kNotFound);
  refused("dense/kernel", true, {0}, one, absl::StatusCode::kNotFound);
  refused("items", true, {1000}, Filled(kFloat32, {1, 16}, 1), absl::StatusCode::kOutOfRange);
  Tensor bad = Filled(kFloat32, {1, kColumns}, 1);
  bad.data<float>()[5] = std::numeric_limits<float>::infinity();
  refused("dense/kernel", false, {0}, bad, invalid);
  EXPECT_EQ(Kernel(), before);
  EXPECT_TRUE(Scan(100).empty());
}

TEST_P(RowsTest, AScanFindsEachRowThatExistsOnce) {
  EXPECT_TRUE(Scan(7).empty());
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < 1000; id += 3) ids.push_back(id);
  std::vector<float> values(ids.size() * kDim);
  PsSession session = cluster_.Session();
  const RowsRead read{kItems, ids, values.data()};
  MU_ASSERT_OK(session.Pull({}, {&read, 1}));
  int many = 0, few = 0;
  const auto found = Scan(1, &many);
  EXPECT_EQ(found, Scan(1000, &few));
  EXPECT_EQ(few, 64) << "a call for each partition";
  EXPECT_GE(many, static_cast<int>(ids.size()));
  ASSERT_EQ(found.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::vector<float> row(values.begin() + i * kDim, values.begin() + (i + 1) * kDim);
    EXPECT_EQ(found.at(ids[i]), row) << ids[i];
  }
}

TEST_P(RowsTest, AdditionsToRowsAreAddedUpAndAppliedOnce) {
  std::vector<float> expected = Kernel();
  const std::vector<int64_t> rows = {299, 4, 4};
  const Tensor delta = Filled(kFloat32, {3, kColumns}, 0);
  const std::vector<int64_t> counted = {2, 2};
  const std::vector<int32_t> counts = {5, 6};
  const VariableWrite writes[] = {
      {.variable = kKernel, .kind = VariableWrite::kScatterAdd, .value = delta.raw(), .rows = rows},
      {.variable = kSeen,
       .kind = VariableWrite::kScatterAdd,
       .value = counts.data(),
       .rows = counted}};
  for (size_t r = 0; r < rows.size(); ++r) {
    for (int64_t c = 0; c < kColumns; ++c)
      expected[rows[r] * kColumns + c] += delta.data<float>()[r * kColumns + c];
  }
  for (int i = 0; i < 2; ++i) {
    PsSession session = cluster_.Session(3);
    session.BeginStep(0);
    MU_ASSERT_OK(session.Push(writes, {}));
    EXPECT_EQ(session.push_repeated(), i == 1);
    const std::vector<float> kernel = Kernel();
    for (size_t e = 0; e < expected.size(); ++e) ASSERT_NEAR(kernel[e], expected[e], 1e-3) << e;
  }
  MU_ASSERT_OK_AND_ASSIGN(const Tensor seen,
                          cluster_.admin().ReadVariable(cluster_.context(), "seen"));
  EXPECT_THAT(seen.flat<int32_t>(), ElementsAre(7, 7, 18, 7));
  const std::vector<int64_t> outside = {300};
  const VariableWrite bad{.variable = kKernel,
                          .kind = VariableWrite::kScatterAdd,
                          .value = delta.raw(),
                          .rows = outside};
  PsSession session = cluster_.Session(4);
  session.BeginStep(0);
  EXPECT_THAT(session.Push({&bad, 1}, {}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("row 300")));
}

TEST_P(RowsTest, NewValuesAreAppliedOnceAndOfARowTheLastCounts) {
  std::vector<float> expected = Kernel();
  const std::vector<int64_t> rows = {299, 4, 4};
  const Tensor values = Filled(kFloat32, {3, kColumns}, 0);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (int64_t c = 0; c < kColumns; ++c)
      expected[rows[r] * kColumns + c] = values.data<float>()[r * kColumns + c];
  }
  const std::vector<int32_t> seen = {9, 8, 7, 6};
  const VariableWrite writes[] = {
      {.variable = kKernel,
       .kind = VariableWrite::kScatterUpdate,
       .value = values.raw(),
       .rows = rows},
      {.variable = kSeen, .kind = VariableWrite::kAssign, .value = seen.data()}};
  const auto read_seen = [&] {
    auto tensor = cluster_.admin().ReadVariable(cluster_.context(), "seen");
    EXPECT_THAT(tensor, testing::IsOk());
    const auto flat = tensor->flat<int32_t>();
    return std::vector<int32_t>(flat.begin(), flat.end());
  };
  PsSession session = cluster_.Session(3);
  session.BeginStep(0);
  MU_ASSERT_OK(session.Push(writes, {}));
  EXPECT_FALSE(session.push_repeated());
  EXPECT_EQ(Kernel(), expected);
  EXPECT_EQ(read_seen(), seen);
  // Another step changes both; a repeat of the first changes nothing back.
  const std::vector<int32_t> one(4, 1);
  const VariableWrite add{
      .variable = kSeen, .kind = VariableWrite::kAssignAdd, .value = one.data()};
  PsSession other = cluster_.Session(4);
  other.BeginStep(0);
  MU_ASSERT_OK(other.Push({&add, 1}, {}));
  PsSession again = cluster_.Session(3);
  again.BeginStep(0);
  MU_ASSERT_OK(again.Push(writes, {}));
  EXPECT_TRUE(again.push_repeated());
  EXPECT_THAT(read_seen(), ElementsAre(10, 9, 8, 7));
  const std::vector<int64_t> outside = {-1};
  const VariableWrite bad{.variable = kKernel,
                          .kind = VariableWrite::kScatterUpdate,
                          .value = values.raw(),
                          .rows = outside};
  other.BeginStep(1);
  EXPECT_THAT(other.Push({&bad, 1}, {}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("row -1")));
  MU_ASSERT_OK_AND_ASSIGN(const auto stats, cluster_.admin().Stats(cluster_.context()));
  for (const pb::PsStatsReply& reply : stats) {
    for (const pb::PartitionStats& partition : reply.partitions()) {
      if (!partition.table() && partition.id() == kSeen) EXPECT_EQ(partition.updates(), 2u);
    }
  }
}

TEST_P(RowsTest, ProductsAreThoseOfTheWholeVariable) {
  const std::vector<float> w = Kernel();
  constexpr int64_t kBatch = 3;
  std::vector<float> x(kBatch * kColumns), dy(kBatch * kRows);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i % 17);
  for (size_t i = 0; i < dy.size(); ++i) dy[i] = 0.02f * static_cast<float>(i % 13);
  std::vector<float> y(kBatch * kRows, -1), y2(kBatch * kRows, -1), dx(kBatch * kColumns, -1);
  const std::vector<float> x2(x.rbegin(), x.rend());
  PsSession session = cluster_.Session(3);
  session.BeginStep(0);
  const ProductRead products[] = {{kKernel, false, kBatch, x.data(), y.data()},
                                  {kKernel, false, kBatch, x2.data(), y2.data()},
                                  {kKernel, true, kBatch, dy.data(), dx.data()}};
  MU_ASSERT_OK(session.Multiply(products));
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t i = 0; i < kRows; ++i) {
      double sum = 0, sum2 = 0;
      for (int64_t j = 0; j < kColumns; ++j) {
        sum += x[b * kColumns + j] * w[i * kColumns + j];
        sum2 += x2[b * kColumns + j] * w[i * kColumns + j];
      }
      ASSERT_NEAR(y[b * kRows + i], sum, 1e-4);
      ASSERT_NEAR(y2[b * kRows + i], sum2, 1e-4);
    }
    for (int64_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < kRows; ++i) sum += dy[b * kRows + i] * w[i * kColumns + j];
      ASSERT_NEAR(dx[b * kColumns + j], sum, 1e-4);
    }
  }
  // The gradient that dy and x give is applied as if it had come whole, once.
  std::vector<float> gradient(kRows * kColumns);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      for (int64_t b = 0; b < kBatch; ++b)
        gradient[i * kColumns + j] += dy[b * kRows + i] * x[b * kColumns + j];
    }
  }
  PsCluster whole(1);
  MU_ASSERT_OK(whole.Configure());
  PsSession other = whole.Session(3);
  other.BeginStep(0);
  const VariableWrite dense{kKernel, VariableWrite::kGradient, gradient.data()};
  MU_ASSERT_OK(other.Push({&dense, 1}, {}));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor expected,
                          whole.admin().ReadVariable(whole.context(), "dense/kernel"));
  const VariableWrite factors{.variable = kKernel,
                              .kind = VariableWrite::kProductGradient,
                              .value = dy.data(),
                              .x = x.data(),
                              .batch = kBatch};
  for (int i = 0; i < 2; ++i) {
    session.BeginStep(0);
    MU_ASSERT_OK(session.Push({&factors, 1}, {}));
    EXPECT_EQ(session.push_repeated(), i == 1);
    const std::vector<float> kernel = Kernel();
    for (size_t e = 0; e < kernel.size(); ++e)
      ASSERT_NEAR(kernel[e], expected.flat<float>()[e], 1e-4) << e;
  }
}

// A denormal factor is 0, as it is to a worker that multiplies.
TEST_P(RowsTest, ProductsTakeDenormalsForZero) {
  const std::vector<float> w = Kernel();
  std::vector<float> x(kColumns, 1e-39f), y(kRows, -1), dy(kRows, 1e-39f), dx(kColumns, -1);
  PsSession session = cluster_.Session(3);
  session.BeginStep(0);
  const ProductRead products[] = {{kKernel, false, 1, x.data(), y.data()},
                                  {kKernel, true, 1, dy.data(), dx.data()}};
  MU_ASSERT_OK(session.Multiply(products));
  EXPECT_THAT(y, ::testing::Each(0.0f));
  EXPECT_THAT(dx, ::testing::Each(0.0f));
  const std::vector<float> large(kColumns, 1e20f);
  const VariableWrite factors{.variable = kKernel,
                              .kind = VariableWrite::kProductGradient,
                              .value = dy.data(),
                              .x = large.data(),
                              .batch = 1};
  MU_ASSERT_OK(session.Push({&factors, 1}, {}));
  EXPECT_EQ(Kernel(), w);
}

TEST_P(RowsTest, ServersCountWhatEachPartitionIsAskedFor) {
  std::vector<float> rows(2 * kColumns);
  PsSession session = cluster_.Session();
  const VariableRead read{kKernel, rows.data(), 0, 2};
  MU_ASSERT_OK(session.Pull({&read, 1}, {}));
  std::vector<float> x(3 * kColumns), y(3 * kRows);
  const ProductRead product{kKernel, false, 3, x.data(), y.data()};
  MU_ASSERT_OK(session.Multiply({&product, 1}));
  MU_ASSERT_OK(AssignRows(1, "items", true, {64}, Filled(kFloat32, {1, 16}, 1)));
  Items({0, 64});
  MU_ASSERT_OK_AND_ASSIGN(const auto stats, cluster_.admin().Stats(cluster_.context()));
  std::map<std::pair<bool, uint32_t>, pb::PartitionStats> first;  // of partition 0
  size_t partitions = 0;
  for (const pb::PsStatsReply& reply : stats) {
    for (const pb::PartitionStats& partition : reply.partitions()) {
      ++partitions;
      if (partition.partition() == 0) first[{partition.table(), partition.id()}] = partition;
    }
  }
  EXPECT_EQ(partitions, 5u + 3 + 2 * 64);
  const pb::PartitionStats kernel = first[{false, kKernel}], items = first[{true, kItems}];
  EXPECT_EQ(kernel.reads(), 2u) << "rows, and a product";
  EXPECT_EQ(kernel.read_bytes(), (2u * kColumns + 3u * (kColumns + 100)) * sizeof(float));
  EXPECT_EQ(kernel.updates(), 0u);
  EXPECT_EQ(kernel.bytes(), 2u * 100 * kColumns * sizeof(float)) << "with Adagrad's slot";
  EXPECT_EQ(items.reads(), 1u);
  EXPECT_EQ(items.read_bytes(), 2 * (sizeof(int64_t) + kDim * sizeof(float)));
  EXPECT_EQ(items.updates(), 1u);
  EXPECT_EQ(items.update_bytes(), sizeof(int64_t) + kDim * sizeof(float));
  EXPECT_EQ(items.rows(), 1u);
  EXPECT_EQ(items.bytes(), 2u * kDim * sizeof(float));
}

INSTANTIATE_TEST_SUITE_P(Servers, RowsTest, ::testing::Values(1u, 3u));

}  // namespace
}  // namespace mu
