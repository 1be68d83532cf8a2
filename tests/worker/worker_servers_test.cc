#include <cstring>

#include "tests/testing/wait.h"
#include "tests/worker/test_functions.h"

namespace mu {
namespace {

using testing::HasCode;
using testing::ValueOf;

TEST(WorkerServersTest, LostAndRepeatedCallsChangeNothing) {
  testing::WorkerCluster cluster(2);
  AddCounters(&cluster);
  MU_ASSERT_OK(cluster.Configure());
  const auto function = testing::CountSteps();
  MU_ASSERT_OK(cluster.InstallFunction(function));
  for (const Fault fault : {Fault::kLoseRequest, Fault::kLoseReply, Fault::kDuplicate}) {
    for (const char* method : {"Pull", "Push"}) {
      cluster.faults().Add({.method = method, .fault = fault, .probability = 0.2});
    }
  }
  auto run = cluster.Start(cluster.MakeRun(1, function, 40));
  MU_ASSERT_OK(run->Wait());
  EXPECT_GT(cluster.faults().hits(), 0);
  for (uint32_t i = 0; i < 40; ++i) EXPECT_EQ(ValueOf<int64_t>(run->steps()[i], 0), i);
  cluster.faults().Clear();
  EXPECT_EQ(Steps(cluster), 40);
}

TEST(WorkerServersTest, AServerAtANewPlaceIsUsedAtOnce) {
  testing::WorkerCluster cluster(2);
  AddCounters(&cluster);
  MU_ASSERT_OK(cluster.Configure());
  const auto function = testing::CountSteps();
  MU_ASSERT_OK(cluster.InstallFunction(function));
  auto run = cluster.Start(cluster.MakeRun(1, function, 2000));
  run->WaitForResults(1);
  const uint32_t index = cluster.routing().variables(0).placement(0);
  cluster.StopServing(static_cast<int>(index));
  auto* server = cluster.routing().mutable_servers(static_cast<int>(index));
  server->set_address(cluster.ServeAt(static_cast<int>(index)));
  server->set_incarnation(2);
  MU_ASSERT_OK(cluster.Configure());
  MU_ASSERT_OK(run->Wait());
  EXPECT_EQ(Steps(cluster), 2000);
}

// A step's update was computed from values that a restore has taken back: it is of no use in the
// state that is there then, although the worker knows the new generation when it tries again.
TEST(WorkerServersTest, AStepThatPulledBeforeARestorePushesNothingAfterIt) {
  testing::WorkerCluster cluster;
  AddCounters(&cluster);
  cluster.context().set_generation(1);
  cluster.routing().set_generation(1);
  MU_ASSERT_OK(cluster.Configure());
  const auto function = testing::CountSteps();
  MU_ASSERT_OK(cluster.InstallFunction(function));
  cluster.faults().Add({.method = "Push", .fault = Fault::kLoseRequest});
  auto run = cluster.Start(cluster.MakeRun(1, function, 1));
  testing::WaitWhile([&] { return cluster.faults().hits() == 0; });  // it has pulled, and pushes
  cluster.context().set_generation(2);
  MU_ASSERT_OK(PsAdmin(&cluster.client()).Restore(cluster.context(), "", {}));
  cluster.routing().set_generation(2);
  cluster.routing().mutable_servers(0)->set_incarnation(2);
  MU_ASSERT_OK(cluster.Configure());
  cluster.faults().Clear();
  const absl::Status status = run->Wait();
  EXPECT_EQ(KindOf(status), pb::ERROR_STALE) << status;
  EXPECT_TRUE(run->steps().empty());
  EXPECT_EQ(Steps(cluster), 0);
}

// Its servers may be gone with the former coordinator: the runs of the new one do not wait for
// them.
TEST(WorkerServersTest, ANewEpochGivesUpAPushThatIsNotAnswered) {
  testing::WorkerCluster cluster(1, absl::InfiniteDuration());
  AddCounters(&cluster);
  MU_ASSERT_OK(cluster.Configure());
  const auto function = testing::CountSteps();
  MU_ASSERT_OK(cluster.InstallFunction(function));
  cluster.faults().Add({.method = "Push", .fault = Fault::kLoseRequest});
  auto run = cluster.Start(cluster.MakeRun(1, function, 1));
  testing::WaitWhile([&] { return cluster.faults().hits() == 0; });
  cluster.context().set_epoch(2);
  MU_ASSERT_OK(cluster.ConfigureWorker());
  EXPECT_EQ(KindOf(run->Wait()), pb::ERROR_STALE);
  cluster.faults().Clear();
  MU_ASSERT_OK(cluster.Configure());
  MU_ASSERT_OK(cluster.InstallFunction(function));
  MU_EXPECT_OK(cluster.Start(cluster.MakeRun(2, function, 1))->Wait());
}

TEST(WorkerServersTest, AServerOutOfReachIsNamed) {
  testing::WorkerCluster cluster(1, absl::Milliseconds(200));
  AddCounters(&cluster);
  MU_ASSERT_OK(cluster.Configure());
  const auto function = testing::CountSteps();
  MU_ASSERT_OK(cluster.InstallFunction(function));
  cluster.StopServing(0);
  const absl::Status status = cluster.Start(cluster.MakeRun(1, function, 1))->Wait();
  EXPECT_THAT(status, HasCode(absl::StatusCode::kUnavailable));
  const auto detail = DetailOf(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->kind(), pb::ERROR_MACHINE);
  EXPECT_EQ(detail->role(), pb::ROLE_PSSERVER);
  EXPECT_EQ(detail->index(), 0u);
}

TEST(WorkerServersTest, AnIdOutOfRangeIsTheUsersError) {
  testing::WorkerCluster cluster(2);
  cluster.AddTable("items", 5, 4);
  MU_ASSERT_OK(cluster.Configure());
  MU_ASSERT_OK(cluster.InstallData({"0", "4", "5"}, 3));
  testing::GraphMaker g;
  const auto ids = g.Op("unique", {g.Column("id", muster::INT64, Shape({-1}))});
  g.Return("sum", g.Op("reduce_sum", {g.PullRows("items", 0, 5, 4, ids)}));
  MU_ASSERT_OK(cluster.InstallFunction(g.function()));
  const absl::Status status = cluster.Start(cluster.MakeRun(1, g.function(), 1))->Wait();
  EXPECT_THAT(status,
              testing::StatusIs(absl::StatusCode::kOutOfRange, ::testing::HasSubstr("items")));
  EXPECT_EQ(KindOf(status), pb::ERROR_USER);
  EXPECT_EQ(DetailOf(status)->step(), 0);
}

// What a model's training leaves behind, on `servers` servers, in functions of `packed` of its 12
// steps.
std::vector<float> Train(int servers, uint32_t packed) {
  testing::WorkerCluster cluster(servers);
  cluster.AddVariable("w", muster::FLOAT32, Shape({4, 3}), 0.05f);
  cluster.AddTable("items", 50, 4);
  EXPECT_THAT(cluster.Configure(), testing::IsOk());
  std::vector<std::string> lines;
  for (int i = 0; i < 96; ++i) lines.push_back(std::to_string(i * 37 % 50));
  EXPECT_THAT(cluster.InstallData(lines, 8), testing::IsOk());

  // loss = mean(square(items[id] x w)); its gradients by hand.
  testing::GraphMaker g;
  const auto unique = g.Op("unique", {g.Column("id", muster::INT64, Shape({-1}))});
  const auto rows = g.PullRows("items", 0, 50, 4, unique);
  const auto x = g.Op("gather", {rows, unique.Output(1)});
  const auto w = g.Read("w", 0, muster::FLOAT32, Shape({4, 3}));
  const auto y = g.Op("matmul", {x, w});
  const auto dy = g.Op("multiply", {y, g.Constant(Tensor::Scalar(2.0f / 24))});
  const auto dw = g.Op("matmul", {x, dy}, {{"transpose_a", testing::BoolAttr(true)}});
  const auto dx = g.Op("matmul", {dy, w}, {{"transpose_b", testing::BoolAttr(true)}});
  g.Update("apply_gradient", "w", 0, muster::FLOAT32, Shape({4, 3}),
           g.Op("subtract", {dw, g.Constant(Tensor::Scalar(0.25f))}));
  g.PushRows("items", 0, 50, 4, unique, g.Op("gather_grad", {dx, unique.Output(1), rows}));
  g.Return("loss", g.Op("reduce_mean", {g.Op("square", {y})}));
  EXPECT_THAT(cluster.InstallFunction(g.function()), testing::IsOk());

  std::vector<float> values;
  for (uint32_t first = 0; first < 12; first += packed) {
    auto request = cluster.MakeRun(1 + first, g.function(), packed);
    request.mutable_batches(0)->set_first_batch(first);
    auto run = cluster.Start(request);
    EXPECT_THAT(run->Wait(), testing::IsOk());
    for (const auto& step : run->steps()) values.push_back(ValueOf<float>(step, 0));
  }
  EXPECT_EQ(values.size(), 12u);
  const Tensor trained = cluster.Read("w");
  values.insert(values.end(), trained.data<float>(), trained.data<float>() + trained.elements());
  return values;
}

TEST(WorkerServersTest, SameBitsForAnyNumberOfServersAndAnyPacking) {
  const std::vector<float> reference = Train(1, 12);
  EXPECT_NE(reference[0], reference[11]);
  for (const auto& [servers, packed] : {std::pair(1, 1u), {2, 12u}, {3, 12u}, {3, 1u}, {2, 4u}}) {
    const std::vector<float> values = Train(servers, packed);
    ASSERT_EQ(values.size(), reference.size());
    EXPECT_EQ(std::memcmp(values.data(), reference.data(), values.size() * sizeof(float)), 0)
        << servers << " servers, functions of " << packed << " steps";
  }
}

}  // namespace
}  // namespace mu
