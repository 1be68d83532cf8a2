// Variables and tables that are younger than every checkpoint.
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"
#include "tests/conformance/conformance.h"

namespace mu {
namespace {

using testing::OnRequest;
using testing::StartCounting;

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

}  // namespace
}  // namespace mu
