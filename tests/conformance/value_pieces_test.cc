// Values of more than one call to the servers, over real processes that die.
#include <algorithm>
#include <string>
#include <vector>

#include "common/checkpoint/safetensors.h"
#include "coordinator/frontend/variable_ops.h"
#include "coordinator/training/checkpointer.h"
#include "coordinator/training/table_file.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::OnRequest;
using testing::TestCluster;

// Each piece of a call has its place: after what came before it, and before what comes then.
TEST(Conformance, AssignedPiecesSurviveAServer) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  constexpr int64_t kWide = 1 << 16, kCount = 80;  // 63 rows are a piece
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table,
                          c.CreateEmbeddingTable({.name = "t", .rows = kCount, .dim = kWide}));
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable variable,
      c.CreateVariable({.name = "v", .shape = {kCount, kWide}, .partitioner = FixedShards{3}}));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c.DefineFunction("step", [&](FunctionBuilder&) {
    AssignAdd(variable, Read(variable));
  }));
  Tensor values(kFloat32, Shape({kCount, kWide}));
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < kCount; ++i) {
    ids.push_back(7 * i % kCount);
    std::fill_n(values.data<float>() + i * kWide, kWide, static_cast<float>(i));
  }
  MU_ASSERT_OK(c.Assign(variable, values));
  c.Schedule(step);
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK(c.AssignRows(table, ids, values));
  MU_ASSERT_OK(c.AssignRows(variable, {79},
                            Tensor(values.dtype(), Shape({1, kWide}), nullptr, values.raw())));
  c.Schedule(step);
  MU_ASSERT_OK(c.Join());
  for (const int server : {0, 1}) {
    cluster->KillServer(server);
    MU_ASSERT_OK(cluster->StartServer(server));
    c.Schedule(step, {.steps = server == 0 ? 1u : 2u});
    MU_ASSERT_OK(c.Join());
    MU_ASSERT_OK_AND_ASSIGN(const Tensor rows, c.ReadRows(table, ids));
    EXPECT_EQ(rows.flat<float>(), values.flat<float>());
    const float doubled = server == 0 ? 8 : 32;  // after three steps, and five
    MU_ASSERT_OK_AND_ASSIGN(const Tensor read, c.Read(variable));
    for (int64_t row = 0; row < kCount; ++row)
      ASSERT_EQ(read.data<float>()[row * kWide + row],
                row == 79 ? 0 : doubled * static_cast<float>(row))
          << row;
  }
}

TEST(Conformance, AnImportThatEndsSaysHowFarItCame) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& c = cluster->coordinator();
  CheckpointerOptions options = OnRequest(cluster->directory() + "/checkpoints");
  options.most_uncovered_bytes = 100'000;
  Checkpointer checkpointer(&c, options);
  constexpr int64_t kWide = 10'000;  // 104 rows are a piece
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table,
                          c.CreateEmbeddingTable({.name = "t", .rows = 200, .dim = kWide}));
  const std::string path = cluster->directory() + "/t.safetensors";
  const std::vector<TensorEntry> entries = {{"t", kFloat32, {200, kWide}}};
  const std::vector<float> values(200 * kWide, 1.0f);
  MU_ASSERT_OK_AND_ASSIGN(SafetensorsWriter file, SafetensorsWriter::Create(path, entries, {}));
  MU_ASSERT_OK(file.Append(values.data(), values.size() * sizeof(float)));
  MU_ASSERT_OK(file.Finish());
  EXPECT_THAT(
      ImportTable(c, table, path),
      testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                        ::testing::HasSubstr("of the 200 rows of " + path +
                                             " the first 104 were assigned, the next 96 perhaps")));
  size_t rows = 0;
  MU_ASSERT_OK(c.ReadTable(table, [&](const Coordinator::TableRows& piece) {
    rows += piece.ids.size();
    return absl::OkStatus();
  }));
  EXPECT_EQ(rows, 104u);
}

}  // namespace
}  // namespace mu
