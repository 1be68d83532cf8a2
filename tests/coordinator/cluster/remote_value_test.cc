// The result of a call, also of one that an earlier coordinator had begun.
#include "coordinator/cluster/remote_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Of calls that have got these batches of two leases: 2 and 5.
class RemoteValueTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kBatches = 7;

  static std::shared_ptr<const pb::LeaseProto> Lease(uint64_t index) {
    auto lease = std::make_shared<pb::LeaseProto>();
    lease->set_index(index);
    return lease;
  }
  // Of a call that asked for `requested` steps; the result of the first that comes here is that of
  // step `first`.
  FunctionResult ResultOf(uint32_t requested, uint32_t first) const {
    const auto state =
        std::make_shared<FunctionState>(std::vector<std::string>(), requested, first);
    // Each run brings the batches anew.
    for (int run = 0; run < 2; ++run) state->SetBatches({{first_, 4, 2}, {second_, 0, 5}});
    for (uint32_t step = first; step < kBatches; ++step) {
      pb::StepResult result;
      result.set_step(step);
      result.set_samples(100 + step);
      absl::StatusOr<FunctionResult::Step> parsed = FunctionState::Parse(result);
      EXPECT_THAT(parsed, testing::IsOk());
      if (parsed.ok()) state->AddStep(result, *std::move(parsed));
    }
    state->Finish(absl::OkStatus());
    const absl::StatusOr<FunctionResult> result = RemoteValue(FunctionId(1), state).Fetch();
    EXPECT_THAT(result, testing::IsOk());
    return *result;
  }
  // Lease and number of each batch.
  static std::vector<std::pair<uint64_t, uint32_t>> BatchesOf(const FunctionResult& result) {
    std::vector<std::pair<uint64_t, uint32_t>> batches;
    for (const BatchRange& range : result.batches()) {
      for (uint32_t b = 0; b < range.batches; ++b)
        batches.emplace_back(range.lease->index(), range.first_batch + b);
    }
    return batches;
  }

  const std::shared_ptr<const pb::LeaseProto> first_ = Lease(7), second_ = Lease(8);
};

TEST_F(RemoteValueTest, ACallHasAllItsBatches) {
  const FunctionResult result = ResultOf(kBatches, 0);
  EXPECT_EQ(result.steps(), kBatches);
  EXPECT_FALSE(result.end_of_data());
  EXPECT_THAT(BatchesOf(result), ElementsAre(Pair(7, 4), Pair(7, 5), Pair(8, 0), Pair(8, 1),
                                             Pair(8, 2), Pair(8, 3), Pair(8, 4)));
}

TEST_F(RemoteValueTest, AContinuedCallHasTheBatchesOfItsSteps) {
  EXPECT_THAT(BatchesOf(ResultOf(kBatches, 1)),
              ElementsAre(Pair(7, 5), Pair(8, 0), Pair(8, 1), Pair(8, 2), Pair(8, 3), Pair(8, 4)));
  EXPECT_THAT(BatchesOf(ResultOf(kBatches, 2)),
              ElementsAre(Pair(8, 0), Pair(8, 1), Pair(8, 2), Pair(8, 3), Pair(8, 4)));
  EXPECT_THAT(BatchesOf(ResultOf(kBatches, 5)), ElementsAre(Pair(8, 3), Pair(8, 4)));
  EXPECT_THAT(BatchesOf(ResultOf(kBatches, kBatches)), IsEmpty());
}

TEST_F(RemoteValueTest, AContinuedCallCountsFromItsFirstStep) {
  const FunctionResult result = ResultOf(kBatches, 5);
  ASSERT_EQ(result.steps(), 2u);
  EXPECT_EQ(result.samples(0), 105u);
  EXPECT_EQ(result.samples(1), 106u);
}

TEST_F(RemoteValueTest, ACallThatIsContinuedIsNoEndOfData) {
  for (const uint32_t first : {0u, 1u, 6u, kBatches})
    EXPECT_FALSE(ResultOf(kBatches, first).end_of_data()) << first;
}

TEST_F(RemoteValueTest, DataThatEndedStaysAtItsEnd) {
  for (const uint32_t first : {0u, 1u, 6u, kBatches})
    EXPECT_TRUE(ResultOf(kBatches + 1, first).end_of_data()) << first;
}

TEST_F(RemoteValueTest, ACallWithoutDataHasNoBatches) {
  FunctionState state(std::vector<std::string>(), 3, 3);
  state.SetBatches({});
  state.Finish(absl::OkStatus());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, state.Wait());
  EXPECT_THAT(result.batches(), IsEmpty());
  EXPECT_FALSE(result.end_of_data());
}

}  // namespace
}  // namespace mu
