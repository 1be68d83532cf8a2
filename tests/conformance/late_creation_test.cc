// Variables and tables that are younger than every checkpoint.
#include "common/env/file.h"
#include "coordinator/launch/launch.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"
#include "tests/conformance/conformance.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::OnRequest;
using testing::StartCounting;
using testing::StatusIs;

// Tables are placed after variables, so a later variable must not move what is there.
TEST(Conformance, WhatHasItsPlaceKeepsIt) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 1, .ps = 2}));
  Coordinator& c = counting.c();
  c.EnableRecovery(counting.cluster->directory() + "/checkpoints");
  MU_ASSERT_OK_AND_ASSIGN(
      const EmbeddingTable table,
      c.CreateEmbeddingTable(
          {.name = "rows", .rows = 100, .dim = 4, .optimizer = Sgd{.learning_rate = 0.5}}));
  const std::vector<int64_t> ids = {0, 1, 2, 3, 98, 99};
  MU_ASSERT_OK_AND_ASSIGN(const Tensor rows, c.ReadRows(table, ids));
  for (int i = 0; i < 3; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(const Variable later,
                            c.CreateVariable({.name = absl::StrCat("later ", i)}));
    if (i == 1) {
      counting.cluster->KillServer(0);
      MU_ASSERT_OK(counting.cluster->StartServer(0));
    }
    MU_ASSERT_OK(c.Read(later).status());
    MU_ASSERT_OK_AND_ASSIGN(const Tensor now, c.ReadRows(table, ids));
    EXPECT_THAT(now.flat<float>(), ::testing::ElementsAreArray(rows.flat<float>()));
  }
}

TEST(Conformance, PsKilledAfterACreation) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 1, .ps = 2}));
  Coordinator& c = counting.c();
  Checkpointer checkpointer(&c, OnRequest(counting.cluster->directory() + "/checkpoints"));
  for (int i = 0; i < 2; ++i) {  // as many as recovery can go back to
    c.Schedule(counting.count, {.steps = 5});
    MU_ASSERT_OK(c.Join());
    MU_ASSERT_OK(checkpointer.TakeNow());
  }
  MU_ASSERT_OK_AND_ASSIGN(const Variable later, c.CreateVariable({.name = "later",
                                                                  .shape = Shape({64}),
                                                                  .initializer = Normal{0, 1},
                                                                  .trainable = false,
                                                                  .partitioner = FixedShards{4}}));
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table,
                          c.CreateEmbeddingTable({.name = "rows",
                                                  .rows = 100,
                                                  .dim = 4,
                                                  .initializer = Normal{0, 1},
                                                  .optimizer = Sgd{.learning_rate = 0.5}}));
  const std::vector<int64_t> ids = {0, 1, 2, 3, 98, 99};
  MU_ASSERT_OK_AND_ASSIGN(const Tensor rows, c.ReadRows(table, ids));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor initial, c.Read(later));
  const Tensor ones = Tensor::Of<float>(Shape({64}), std::vector<float>(64, 1));
  MU_ASSERT_OK_AND_ASSIGN(const Function add, c.DefineFunction("add", [&](FunctionBuilder&) {
    AssignAdd(later, ConstantTensor(ones));
  }));
  int64_t added = 0, counted = 10;
  const auto work = [&](uint32_t steps) {
    c.Schedule(add, {.steps = steps});
    c.Schedule(counting.count, {.steps = steps});
    MU_ASSERT_OK(c.Join());
    added += steps;
    counted += steps;
  };
  const auto check = [&] {
    MU_ASSERT_OK_AND_ASSIGN(const Tensor value, c.Read(later));
    for (size_t i = 0; i < 64; ++i) {
      float expected = initial.data<float>()[i];
      for (int64_t step = 0; step < added; ++step) expected += 1;
      EXPECT_EQ(value.data<float>()[i], expected) << i;
    }
    MU_ASSERT_OK_AND_ASSIGN(const Tensor now, c.ReadRows(table, ids));
    EXPECT_THAT(now.flat<float>(), ::testing::ElementsAreArray(rows.flat<float>()));
    EXPECT_EQ(counting.Count(), counted);
  };
  work(5);
  for (int server = 0; server < 2; ++server) {
    counting.cluster->KillServer(server);
    MU_ASSERT_OK(counting.cluster->StartServer(server));
    work(2);
    check();
  }
  MU_ASSERT_OK(checkpointer.TakeNow());  // now they are in one
  work(3);
  counting.cluster->KillServer(0);
  MU_ASSERT_OK(counting.cluster->StartServer(0));
  work(2);
  check();
  const auto failures = c.Stats().failures;
  ASSERT_EQ(failures.size(), 3u);
  EXPECT_THAT(failures[0].message, ::testing::HasSubstr("checkpoints/ckpt-00000002"));
  EXPECT_THAT(failures[2].message, ::testing::HasSubstr("checkpoints/ckpt-00000003"));
}

// Nothing is taken out of a job's definitions: one that servers and workers refuse would keep the
// job from its checkpoints, and a lost server would end it.
TEST(Conformance, RefusedCreationsLeaveTheJobAsItWas) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 1, .ps = 2}));
  Coordinator& c = counting.c();
  Checkpointer checkpointer(&c, OnRequest(counting.cluster->directory() + "/checkpoints"));
  const auto refused = [](const char* says) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr("\"later\""), HasSubstr(says)));
  };
  for (int i = 0; i < 20; ++i) c.Schedule(counting.count, {.steps = 10});
  EXPECT_THAT(c.CreateVariable({.name = "later", .dtype = kInt64, .initializer = Normal{}}),
              refused("needs type float32"));
  EXPECT_THAT(c.CreateVariable({.name = "later", .dtype = kInt32, .initializer = Constant{0.5f}}),
              refused("is not whole"));
  EXPECT_THAT(c.CreateVariable({.name = "later",
                                .initializer = Uniform{-3e38f, 3e38f},
                                .optimizer = Sgd{.learning_rate = 0.5f}}),
              refused("range is not a finite number"));
  const auto table = [&](int64_t rows, int64_t dim, uint32_t partitions) {
    return c.CreateEmbeddingTable({.name = "later",
                                   .rows = rows,
                                   .dim = dim,
                                   .optimizer = Sgd{.learning_rate = 0.5f},
                                   .partitions = partitions});
  };
  EXPECT_THAT(table(1, 65'537, 0), refused("at most 65536"));
  EXPECT_THAT(table(1, 1, (1 << 20) + 1), refused("1048577 partitions"));
  EXPECT_THAT(table(int64_t{1} << 62, 1, 0), refused("rows"));
  EXPECT_THAT(table(10'000'000'000'000'000, 1, 0), refused("or more partitions"));
  MU_ASSERT_OK(checkpointer.TakeNow());
  counting.cluster->KillServer(0);
  MU_ASSERT_OK(counting.cluster->StartServer(0));
  MU_ASSERT_OK(c.Join());
  EXPECT_EQ(counting.Count(), 200);
  // Nor is the name taken.
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable later,
      c.CreateVariable({.name = "later", .dtype = kInt64, .initializer = Constant{7}}));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor value, c.Read(later));
  EXPECT_EQ(value.data<int64_t>()[0], 7);
  MU_ASSERT_OK(checkpointer.TakeNow());
}

// Once servers run, whoever creates the parameter is told: the job goes on without it.
TEST(Conformance, ALaterPlacementOnNoServerIsRefused) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("placement"));
  const PlacementFunction placement = [](const PlacementRequest& request) {
    return request.name == "nowhere" ? 7u : 1u;
  };
  MU_ASSERT_OK_AND_ASSIGN(auto c, Local({.workers = 1,
                                         .ps = 2,
                                         .job_dir = directory.path(),
                                         .placement = placement,
                                         .binary_dir = testing::BinaryDirectory()}));
  c->EnableRecovery(directory.path() + "/checkpoints");
  c->StartFresh();
  MU_ASSERT_OK_AND_ASSIGN(const Variable v,
                          c->CreateVariable({.name = "v", .shape = {3}, .trainable = false}));
  MU_ASSERT_OK(c->Read(v).status());
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("chose server 7"));
  EXPECT_THAT(c->CreateVariable({.name = "nowhere", .trainable = false}), refused);
  EXPECT_THAT(c->CreateEmbeddingTable({.name = "nowhere", .rows = 9, .dim = 1, .trainable = false}),
              refused);
  MU_EXPECT_OK(c->Checkpoint().status());
  MU_ASSERT_OK_AND_ASSIGN(const Variable later,
                          c->CreateVariable({.name = "later", .trainable = false}));
  MU_EXPECT_OK(c->Read(later).status());
}

}  // namespace
}  // namespace mu
