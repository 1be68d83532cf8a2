// What a function with micro batches must keep to before a worker runs it.
#include "common/graph/slice_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/verifier.h"
#include "tests/testing/graph_maker.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::GraphMaker;
using ::mu::testing::IntAttr;
using ::mu::testing::StatusIs;
using ::mu::testing::StringAttr;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ref = GraphMaker::Ref;

const GraphMaker::Attrs kMean = {{"combine", StringAttr("mean")}};

// A graph of four micro batches with a column and a variable.
struct Sliced : GraphMaker {
  Sliced() { function().set_micro_batches(4); }
  absl::Status Verify() { return VerifyFunction(function(), GraphStage::kLowered); }
  Ref x = Column("x", kFloat32, {-1});
  Ref w = Read("w", 1, kFloat32, {});
  Ref mean = Op("reduce_mean", {x});
};

auto Refuses(const std::string& op, const std::string& why) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr("op \"" + op + "\""), HasSubstr("test.cc:"), HasSubstr(why)));
}

TEST(SliceRules, PartsOfAStep) {
  Sliced g;
  const Ref all = g.Op("accumulate", {g.mean}, kMean);
  g.Op("multiply", {all, g.w});
  g.Op("multiply", {g.mean, g.w});
  g.Op("square", {g.w});
  g.Op("random_uniform", {g.w}, {{"seed", IntAttr(1)}, {"index", IntAttr(0)}});
  const Ref unique = g.Op("unique", {g.Constant(Tensor::Of<int64_t>({1}, {2}))});
  g.PullRows("t", 1, 9, 1, unique);
  using enum StepPart;
  EXPECT_THAT(StepPartsOf(g.function()), ElementsAre(kSlice, kAny, kSlice, kFinish, kFinish, kSlice,
                                                     kAny, kSlice, kAny, kAny, kSlice));
}

TEST(SliceRules, WhatIsAccumulatedMayLeaveTheStep) {
  Sliced g;
  const Ref all = g.Op("accumulate", {g.mean}, kMean);
  g.Return("mean", all);
  g.Return("w", g.w);
  g.Update("apply_gradient", "w", 1, kFloat32, {}, g.Op("multiply", {all, g.w}));
  const Ref unique = g.Op("unique", {g.Column("ids", kInt64, {-1})});
  const Ref pulled = g.PullRows("t", 1, 9, 1, unique);
  const Ref rows = g.Op("accumulate_rows", {unique, pulled, pulled});
  g.PushRows("t", 1, 9, 1, rows, rows.Output(1));
  MU_EXPECT_OK(g.Verify());
}

TEST(SliceRules, WhatIsOfASliceMayNot) {
  Sliced returned;
  returned.Return("mean", returned.mean);
  EXPECT_THAT(returned.Verify(), Refuses("reduce_mean", "is returned as \"mean\""));
  Sliced pushed;
  pushed.Update("apply_gradient", "w", 1, kFloat32, {}, pushed.mean);
  EXPECT_THAT(pushed.Verify(), Refuses("apply_gradient", "one slice of the batch gives"));
  Sliced rows;
  const Ref unique = rows.Op("unique", {rows.Column("ids", kInt64, {-1})});
  rows.PushRows("t", 1, 9, 1, unique, rows.PullRows("t", 1, 9, 1, unique));
  EXPECT_THAT(rows.Verify(), Refuses("push_rows", "one slice of the batch gives"));
}

TEST(SliceRules, NothingIsOfBothParts) {
  Sliced mixed;
  mixed.Op("add", {mixed.Op("accumulate", {mixed.mean}, kMean), mixed.mean});
  EXPECT_THAT(mixed.Verify(), Refuses("add", "what is accumulated over all of them"));
  Sliced drawn;
  drawn.Op("random_uniform", {drawn.Op("accumulate", {drawn.mean}, kMean)},
           {{"seed", IntAttr(1)}, {"index", IntAttr(0)}});
  EXPECT_THAT(drawn.Verify(), Refuses("random_uniform", "what is accumulated"));
  Sliced twice;
  twice.Op("accumulate", {twice.Op("accumulate", {twice.mean}, kMean)}, kMean);
  EXPECT_THAT(twice.Verify(), Refuses("accumulate", "is accumulated already"));
}

TEST(SliceRules, RowsAreOfDistinctIds) {
  Sliced g;
  const Ref unique = g.Op("unique", {g.Column("ids", kInt64, {-1})});
  const Ref pulled = g.PullRows("t", 1, 9, 1, unique);
  const Ref rows = g.Op("accumulate_rows", {unique, pulled, pulled});
  g.PullRows("t", 1, 9, 1, rows);
  EXPECT_THAT(g.Verify(), Refuses("pull_rows", "needs the distinct ids"));
}

TEST(SliceRules, OnlyMicroBatchesAccumulate) {
  Sliced g;
  g.Return("mean", g.Op("accumulate", {g.mean}, kMean));
  MU_EXPECT_OK(g.Verify());
  for (const uint32_t whole : {0u, 1u}) {
    g.function().set_micro_batches(whole);
    EXPECT_THAT(g.Verify(), Refuses("accumulate", "the function has no micro batches"));
  }
  g.function().set_micro_batches(kMaxMicroBatches);
  MU_EXPECT_OK(g.Verify());
  g.function().set_micro_batches(kMaxMicroBatches + 1);
  EXPECT_THAT(g.Verify(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("micro_batches must be at most 1048576")));
}

TEST(SliceRules, ThereIsABatchToCut) {
  GraphMaker g;
  g.function().set_dataset(0);
  g.function().set_micro_batches(2);
  g.Return("w", g.Read("w", 1, kFloat32, {}));
  EXPECT_THAT(VerifyFunction(g.function(), GraphStage::kTraced),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("but it reads no dataset")));
}

}  // namespace
}  // namespace mu
