// Parts of variables and tables, and where everything is, over real processes that die.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "common/checkpoint/safetensors.h"
#include "common/env/file.h"
#include "coordinator/frontend/variable_ops.h"
#include "coordinator/launch/launch.h"
#include "coordinator/training/checkpointer.h"
#include "coordinator/training/table_file.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::OnRequest;
using testing::TestCluster;

constexpr int64_t kRows = 1000, kDim = 3;

Tensor RowsOf(const std::vector<int64_t>& ids, float plus) {
  Tensor values(kFloat32, Shape({static_cast<int64_t>(ids.size()), kDim}));
  for (size_t i = 0; i < ids.size(); ++i) {
    for (int64_t d = 0; d < kDim; ++d)
      values.data<float>()[i * kDim + d] = static_cast<float>(10 * ids[i] + d) + plus;
  }
  return values;
}

std::map<int64_t, float> FirstOfEach(Coordinator& c, const EmbeddingTable& table, uint32_t piece) {
  std::map<int64_t, float> found;
  MU_EXPECT_OK(c.ReadTable(
      table,
      [&](const Coordinator::TableRows& rows) {
        EXPECT_LE(rows.ids.size(), piece);
        for (size_t i = 0; i < rows.ids.size(); ++i) {
          EXPECT_TRUE(found.emplace(rows.ids[i], rows.values.flat<float>()[i * kDim]).second);
        }
        return absl::OkStatus();
      },
      piece));
  return found;
}

// What was assigned before a checkpoint comes from it, what came after is assigned again.
TEST(Conformance, AssignedRowsSurviveAServer) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table,
                          c.CreateEmbeddingTable({.name = "t", .rows = kRows, .dim = kDim}));
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable variable,
      c.CreateVariable({.name = "v", .shape = {40, kDim}, .partitioner = FixedShards{4}}));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c.DefineFunction("step", [&](FunctionBuilder&) {
    AssignAdd(variable, ConstantTensor(RowsOf(std::vector<int64_t>(40, 0), 1)));
  }));
  std::vector<int64_t> even, all(kRows / 2);
  std::iota(all.begin(), all.end(), 0);
  for (const int64_t id : all) {
    if (id % 2 == 0) even.push_back(id);
  }
  MU_ASSERT_OK(c.AssignRows(table, all, RowsOf(all, 0)));
  MU_ASSERT_OK(c.AssignRows(variable, {39, 5}, RowsOf({39, 5}, 0)));
  c.Schedule(step);
  MU_ASSERT_OK(checkpointer.TakeWhole());
  MU_ASSERT_OK(c.AssignRows(table, even, RowsOf(even, 0.5f)));
  MU_ASSERT_OK(c.AssignRows(variable, {5}, RowsOf({0}, 0)));
  c.Schedule(step);
  MU_ASSERT_OK(c.Join());
  for (const int server : {0, 1}) {
    cluster->KillServer(server);
    MU_ASSERT_OK(cluster->StartServer(server));
    c.Schedule(step);
    MU_ASSERT_OK(c.Join());
    const auto found = FirstOfEach(c, table, 7);
    ASSERT_EQ(found.size(), all.size());
    for (const auto& [id, value] : found)
      ASSERT_EQ(value, static_cast<float>(10 * id) + (id % 2 == 0 ? 0.5f : 0)) << id;
    // Row d of the added constant is d + 1; row 5 was set to d after the first step.
    MU_ASSERT_OK_AND_ASSIGN(const Tensor rows, c.ReadRows(variable, 4, 2));
    const float steps = static_cast<float>(3 + server);
    for (int64_t d = 0; d < kDim; ++d) {
      const float added = static_cast<float>(d + 1);
      EXPECT_EQ(rows.flat<float>()[d], steps * added);
      EXPECT_EQ(rows.flat<float>()[kDim + d], static_cast<float>(d) + (steps - 1) * added);
    }
  }
}

// Each step counts in "steps" and puts the count that it read into rows of "marks" and into
// "latest". One worker, so each step reads what the one before has pushed.
TEST(Conformance, NewValuesOfStepsSurviveAServer) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  const auto create = [&](const std::string& name, const Shape& shape) {
    return c.CreateVariable({.name = name, .shape = shape, .dtype = kInt64, .trainable = false});
  };
  MU_ASSERT_OK_AND_ASSIGN(const Variable steps, create("steps", {}));
  MU_ASSERT_OK_AND_ASSIGN(const Variable latest, create("latest", {}));
  MU_ASSERT_OK_AND_ASSIGN(const Variable marks, c.CreateVariable({.name = "marks",
                                                                  .shape = {8, 1},
                                                                  .dtype = kInt64,
                                                                  .trainable = false,
                                                                  .partitioner = FixedShards{4}}));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c.DefineFunction("step", [&](FunctionBuilder&) {
    const Sym count = Read(steps);
    AssignAdd(steps, 1);
    Assign(latest, count);
    ScatterUpdate(marks, ConstantTensor(Tensor::Of<int64_t>({2}, {7, 0})),
                  Concat({Reshape(count, {1, 1}), Reshape(count + count, {1, 1})}, 0));
  }));
  int64_t done = 0;
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) c.Schedule(step, {.steps = 3});
    done += 3 * count;
    MU_ASSERT_OK(c.Join());
    MU_ASSERT_OK_AND_ASSIGN(const Tensor last, c.Read(latest));
    EXPECT_EQ(last.flat<int64_t>()[0], done - 1);
    MU_ASSERT_OK_AND_ASSIGN(const Tensor all, c.Read(marks));
    EXPECT_THAT(all.flat<int64_t>(),
                ::testing::ElementsAre(2 * (done - 1), 0, 0, 0, 0, 0, 0, done - 1));
  };
  run(5);
  MU_ASSERT_OK(checkpointer.TakeWhole());
  run(5);
  for (const int server : {0, 1}) {
    cluster->KillServer(server);
    MU_ASSERT_OK(cluster->StartServer(server));
    run(2);
  }
}

// A server is lost after Join, and what reads, assigns or saves comes before its steps ran again.
TEST(Conformance, WhatFollowsJoinSeesAllOfTrainingThoughAServerIsLost) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable steps,
      c.CreateVariable({.name = "steps", .shape = {}, .dtype = kInt64, .trainable = false}));
  MU_ASSERT_OK_AND_ASSIGN(const Variable other,
                          c.CreateVariable({.name = "other", .shape = {8, 1}}));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c.DefineFunction("step", [&](FunctionBuilder&) {
    AssignAdd(steps, 1);
    AssignAdd(other, ConstantTensor(Tensor::Of<float>({8, 1}, {1, 1, 1, 1, 1, 1, 1, 1})));
  }));
  MU_ASSERT_OK_AND_ASSIGN(const Function look, c.DefineFunction("look", [&](FunctionBuilder& f) {
    f.Return("steps", Read(steps));
  }));
  constexpr int64_t kSteps = 1000;
  for (int i = 0; i < 20; ++i) c.Schedule(step, {.steps = kSteps / 20});
  MU_ASSERT_OK(c.Join());
  size_t lost = 0;
  const auto lose = [&](int server) {
    ++lost;
    cluster->KillServer(server);
    MU_ASSERT_OK(cluster->StartServer(server));
  };
  const auto read = [&]() -> int64_t {
    const absl::StatusOr<Tensor> value = c.Read(steps);
    MU_EXPECT_OK(value.status());
    return value.ok() ? value->data<int64_t>()[0] : -1;
  };
  const std::string saved = cluster->directory() + "/saved";
  for (const int server : {0, 1}) {
    lose(server);
    EXPECT_EQ(read(), kSteps);
    lose(server);
    const RemoteValue looked = c.Schedule(look);
    MU_ASSERT_OK_AND_ASSIGN(const FunctionResult seen, looked.Fetch());
    MU_ASSERT_OK_AND_ASSIGN(const Tensor value, seen.Get(0, "steps"));
    EXPECT_EQ(value.data<int64_t>()[0], kSteps);
    lose(server);
    MU_ASSERT_OK(c.Save(saved, {}, {.replace = true}));
    MU_ASSERT_OK(c.Restore(saved));
    EXPECT_EQ(read(), kSteps);
  }
  c.Schedule(step, {.steps = kSteps});
  MU_ASSERT_OK(c.Join());
  EXPECT_EQ(read(), 2 * kSteps);
  for (const int server : {0, 1}) {
    lose(server);
    testing::WaitWhile([&] { return c.Stats().failures.size() < lost; });
    MU_ASSERT_OK(c.Assign(steps, Tensor::Scalar(int64_t{server})));
    EXPECT_EQ(read(), server);
  }
}

// Each step takes the sum of its x from every weight, as a gradient of which servers know the
// factors only: whole numbers, so that one that is lost or applied twice shows.
TEST(Conformance, ProductsOnServersAreTrainedOnceWhateverDies) {
  MU_ASSERT_OK_AND_ASSIGN(
      auto cluster,
      TestCluster::Start({.workers = 2, .ps = 2, .default_optimizer = Sgd{.learning_rate = 1.0f}}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  constexpr int64_t kClasses = 40, kSteps = 400;
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable classes,
      c.CreateVariable(
          {.name = "classes", .shape = {kClasses, kDim}, .partitioner = FixedShards{5}}));
  MU_ASSERT_OK_AND_ASSIGN(const Variable scale,
                          c.CreateVariable({.name = "scale", .shape = {kDim}}));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c.DefineFunction("step", [&](FunctionBuilder& f) {
    f.Train();
    const Sym x = ConstantTensor(Tensor::Of<float>({2, kDim}, {1, 2, 3, 10, 20, 30}));
    // The gradient of "scale" goes back through the servers; it is the sum of 0 * dx.
    const Sym y = ShardedMatMul(x + Read(scale) * 0.0f, classes, {.place = ProductPlace::kServers});
    f.Minimize(ReduceSum(y));
    f.Return("y", ReduceSum(y));
  }));
  for (int64_t i = 0; i < kSteps; i += 4) c.Schedule(step, {.steps = 4});
  const auto wait_for = [&](uint64_t steps) {
    testing::WaitWhile([&] { return c.Stats().steps < steps; });
  };
  wait_for(kSteps / 8);
  MU_ASSERT_OK(checkpointer.TakeNow());
  cluster->KillWorker(0);
  MU_ASSERT_OK(cluster->StartWorker(0));
  wait_for(kSteps / 4);
  cluster->KillServer(1);
  MU_ASSERT_OK(cluster->StartServer(1));
  wait_for(kSteps / 2);
  cluster->KillWorker(1);
  MU_ASSERT_OK(cluster->StartWorker(1));
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const Tensor value, c.Read(classes));
  for (int64_t i = 0; i < value.elements(); ++i) {
    const int64_t of_x = 11 * (i % kDim + 1);
    ASSERT_EQ(value.data<float>()[i], static_cast<float>(-kSteps * of_x)) << i;
  }
  MU_ASSERT_OK_AND_ASSIGN(const Tensor zeros, c.Read(scale));
  EXPECT_THAT(zeros.flat<float>(), ::testing::Each(0.0f));
}

TEST(Conformance, ATableIsExportedAndImported) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  const auto create = [&](const char* name, int64_t rows, int64_t dim) {
    return c.CreateEmbeddingTable({.name = name, .rows = rows, .dim = dim});
  };
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table, create("t", kRows, kDim));
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable other, create("other", kRows, kDim));
  const std::string path = cluster->directory() + "/t.safetensors";
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t none, ExportTable(c, table, path));
  EXPECT_EQ(none, 0u);
  const std::vector<int64_t> ids = {999, 0, 17, 64};
  MU_ASSERT_OK(c.AssignRows(table, ids, RowsOf(ids, 0)));
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t rows, ExportTable(c, table, path));
  EXPECT_EQ(rows, ids.size());
  MU_ASSERT_OK(c.AssignRows(table, ids, RowsOf(ids, 100)));
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t imported, ImportTable(c, table, path));
  EXPECT_EQ(imported, ids.size());
  const std::map<int64_t, float> expected = {{0, 0}, {17, 170}, {64, 640}, {999, 9990}};
  EXPECT_EQ(FirstOfEach(c, table, 100), expected);

  EXPECT_THAT(ImportTable(c, other, path), testing::HasCode(absl::StatusCode::kNotFound));
  EXPECT_THAT(ImportTable(c, table, path + ".none"),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                ::testing::HasSubstr("cannot open")));
  EXPECT_TRUE(FirstOfEach(c, other, 100).empty());
}

// Nothing of a file that does not fit is assigned.
TEST(Conformance, AFileThatDoesNotFitATableIsRefused) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table,
                          c.CreateEmbeddingTable({.name = "t", .rows = 10, .dim = kDim}));
  const std::string path = cluster->directory() + "/t.safetensors";
  float value = 2;
  const auto write = [&](const std::vector<int64_t>& ids, int64_t dim, bool with_ids) {
    const int64_t rows = static_cast<int64_t>(ids.size());
    std::vector<TensorEntry> entries;
    if (with_ids) entries.push_back({"t.ids", kInt64, {rows}});
    entries.push_back({"t", kFloat32, {rows, dim}});
    MU_ASSERT_OK_AND_ASSIGN(SafetensorsWriter file, SafetensorsWriter::Create(path, entries, {}));
    if (with_ids) MU_ASSERT_OK(file.Append(ids.data(), ids.size() * sizeof(int64_t)));
    const std::vector<float> values(static_cast<size_t>(rows * dim), value);
    MU_ASSERT_OK(file.Append(values.data(), values.size() * sizeof(float)));
    MU_ASSERT_OK(file.Finish());
  };
  write({1, 10}, kDim, true);
  EXPECT_THAT(ImportTable(c, table, path), testing::HasCode(absl::StatusCode::kOutOfRange));
  write({1, 1}, kDim, true);
  EXPECT_THAT(ImportTable(c, table, path), testing::HasCode(absl::StatusCode::kInvalidArgument));
  write({1}, kDim + 1, true);
  EXPECT_THAT(ImportTable(c, table, path), testing::HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(FirstOfEach(c, table, 100).empty());
  value = std::nanf("");
  write({1}, kDim, true);
  EXPECT_THAT(ImportTable(c, table, path), testing::HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(FirstOfEach(c, table, 100).empty());
  value = 2;
  write({7, 7}, kDim, false);
  MU_EXPECT_OK(ImportTable(c, table, path)) << "without ids: from row 0 on";
  EXPECT_EQ(FirstOfEach(c, table, 100), (std::map<int64_t, float>{{0, 2}, {1, 2}}));
}

TEST(Conformance, ALargeTableGoesThroughAFileInPieces) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  constexpr int64_t kWide = 1 << 16;  // 16 rows are a piece of the file, 63 of a call
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table,
                          c.CreateEmbeddingTable({.name = "t", .rows = 100, .dim = kWide}));
  const auto rows_of = [&](const std::vector<int64_t>& ids, float plus) {
    Tensor values(kFloat32, Shape({static_cast<int64_t>(ids.size()), kWide}));
    for (size_t i = 0; i < ids.size(); ++i)
      std::fill_n(values.data<float>() + i * kWide, kWide, static_cast<float>(ids[i]) + plus);
    return values;
  };
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 100; ++i) ids.push_back(7 * i % 100);
  MU_ASSERT_OK(c.AssignRows(table, ids, rows_of(ids, 0)));
  const std::string path = cluster->directory() + "/t.safetensors";
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t rows, ExportTable(c, table, path));
  EXPECT_EQ(rows, ids.size());
  MU_ASSERT_OK(c.AssignRows(table, ids, rows_of(ids, 100)));
  MU_ASSERT_OK(ImportTable(c, table, path));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor read, c.ReadRows(table, ids));
  EXPECT_EQ(read.flat<float>(), rows_of(ids, 0).flat<float>());
}

// Before that there is no checkpoint to make room.
TEST(Conformance, WhatIsAssignedBeforeTheJobBeginsIsRefusedWhenItsMemoryIsFull) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& c = cluster->coordinator();
  CheckpointerOptions options = OnRequest(cluster->directory() + "/checkpoints");
  options.most_uncovered_bytes = 100'000;
  Checkpointer checkpointer(&c, options);
  constexpr int64_t kWide = 10'000;
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table,
                          c.CreateEmbeddingTable({.name = "t", .rows = 100, .dim = kWide}));
  Tensor row(kFloat32, Shape({1, kWide}));
  std::fill_n(row.data<float>(), kWide, 1.0f);
  const auto assign = [&] {
    for (int64_t id = 0; id < 100; ++id) MU_RETURN_IF_ERROR(c.AssignRows(table, {id}, row));
    return absl::OkStatus();
  };
  EXPECT_THAT(assign(), testing::HasCode(absl::StatusCode::kFailedPrecondition));
  c.StartFresh();
  MU_ASSERT_OK(c.Checkpoint());
  MU_ASSERT_OK(c.Checkpoint());
  MU_EXPECT_OK(c.AssignRows(table, {99}, row)) << "two checkpoints hold what was assigned before";
}

// A checkpoint is no placement: its values go to where the new coordinator puts them.
TEST(Conformance, ACheckpointIsLoadedUnderAnotherPlacement) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("placement"));
  const std::vector<int64_t> ids = {0, 1, 63, 64, 999};
  const auto run = [&](const Placement& placement, bool continues, std::set<uint32_t>* servers) {
    MU_ASSIGN_OR_RETURN(auto c, Local({.workers = 1,
                                       .ps = 2,
                                       .job_dir = directory.path(),
                                       .default_optimizer = Sgd{},
                                       .placement = placement,
                                       .binary_dir = testing::BinaryDirectory()}));
    MU_ASSIGN_OR_RETURN(
        const Variable variable,
        c->CreateVariable({.name = "v", .shape = {kRows, kDim}, .partitioner = FixedShards{3}}));
    MU_ASSIGN_OR_RETURN(const EmbeddingTable table,
                        c->CreateEmbeddingTable({.name = "t", .rows = kRows, .dim = kDim}));
    c->EnableRecovery(directory.path() + "/checkpoints");
    std::vector<int64_t> all(kRows);
    std::iota(all.begin(), all.end(), 0);
    if (continues) {
      MU_RETURN_IF_ERROR(c->Restore().status());
    } else {
      c->StartFresh();
      MU_RETURN_IF_ERROR(c->Assign(variable, RowsOf(all, 1)));
      MU_RETURN_IF_ERROR(c->AssignRows(table, ids, RowsOf(ids, 2)));
      MU_RETURN_IF_ERROR(c->Checkpoint().status());
    }
    MU_ASSIGN_OR_RETURN(const Tensor v, c->Read(variable));
    EXPECT_EQ(v.flat<float>(), RowsOf(all, 1).flat<float>());
    MU_ASSIGN_OR_RETURN(const Tensor t, c->ReadRows(table, ids));
    EXPECT_EQ(t.flat<float>(), RowsOf(ids, 2).flat<float>());
    MU_ASSIGN_OR_RETURN(const std::vector<ParameterInfo> infos, c->Variables());
    for (const ParameterInfo& info : infos)
      for (const PartitionInfo& partition : info.partitions) servers->insert(partition.server);
    return absl::OkStatus();
  };
  std::set<uint32_t> before, after;
  MU_ASSERT_OK(run(PlaceRoundRobin{}, false, &before));
  EXPECT_EQ(before, (std::set<uint32_t>{0, 1}));
  const PlacementFunction second = [](const PlacementRequest&) { return 1u; };
  MU_ASSERT_OK(run(second, true, &after));
  EXPECT_EQ(after, (std::set<uint32_t>{1}));
}

// The error of a placement of one's own is that of whoever needs the servers.
TEST(Conformance, APlacementOnNoServerIsAnError) {
  const PlacementFunction nowhere = [](const PlacementRequest&) { return 7u; };
  MU_ASSERT_OK_AND_ASSIGN(
      auto c,
      Local(
          {.workers = 1, .ps = 2, .placement = nowhere, .binary_dir = testing::BinaryDirectory()}));
  MU_ASSERT_OK_AND_ASSIGN(const Variable v, c->CreateVariable({.name = "v", .shape = {3}}));
  EXPECT_THAT(c->Read(v), testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                            ::testing::HasSubstr("chose server 7")));
}

TEST(Conformance, VariablesSaysWherePartitionsAreAndWhatTheyAreAskedFor) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 3}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable hot,
      c.CreateVariable({.name = "hot", .shape = {30, 2}, .partitioner = FixedShards{3}}));
  MU_ASSERT_OK(c.CreateVariable({.name = "cold", .shape = {7}}));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c.DefineFunction("step", [&](FunctionBuilder&) {
    AssignAdd(hot, Read(hot));
  }));
  c.Schedule(step, {.steps = 20});
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<ParameterInfo> infos, c.Variables());
  ASSERT_EQ(infos.size(), 2u);
  ASSERT_EQ(infos[0].partitions.size(), 3u);
  std::vector<uint32_t> servers;
  for (const PartitionInfo& partition : infos[0].partitions) {
    servers.push_back(partition.server);
    EXPECT_EQ(partition.load.reads, 20u);
    EXPECT_EQ(partition.load.read_bytes, 20u * 10 * 2 * sizeof(float));
    EXPECT_EQ(partition.load.updates, 20u);
    EXPECT_EQ(partition.load.update_bytes, 20u * 10 * 2 * sizeof(float));
    EXPECT_EQ(partition.load.bytes, 10u * 2 * sizeof(float));
  }
  std::sort(servers.begin(), servers.end());
  EXPECT_EQ(servers, (std::vector<uint32_t>{0, 1, 2})) << "balanced by bytes";
  EXPECT_EQ(infos[0].partitions[2].first_row, 20);
  EXPECT_EQ(infos[1].Total().reads, 0u);
}

}  // namespace
}  // namespace mu
