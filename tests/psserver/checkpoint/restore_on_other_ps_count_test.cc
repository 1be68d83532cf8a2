// A checkpoint whose files were cut at different steps, restored onto another number of servers:
// when the steps come again, each partition takes those that its own file does not contain, and the
// state is the undisturbed one, bit for bit.
#include <gtest/gtest.h>

#include <vector>

#include "common/base/hash.h"
#include "common/env/file.h"
#include "tests/psserver/cluster.h"
#include "tests/psserver/state.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::PsCluster;
using ::mu::testing::StateOf;
using Files = std::vector<pb::CheckpointFileProto>;

constexpr uint32_t kSteps = 8;
constexpr uint64_t kFunctions = 2;

// What (function, step) does follows from these two alone.
absl::Status PushStep(PsCluster* cluster, uint64_t function, uint32_t step) {
  SplitMix random(HashCombine(function, step));
  const auto numbers = [&](size_t n) {
    std::vector<float> values(n);
    for (float& v : values) v = static_cast<float>(random.Unit() - 0.5);
    return values;
  };
  std::vector<int64_t> ids;
  for (int64_t id = static_cast<int64_t>(random.Below(5)); id < 500;
       id += 1 + static_cast<int64_t>(random.Below(9))) {
    ids.push_back(id);
  }
  const auto weights = numbers(30), kernel = numbers(300 * 700), items = numbers(ids.size() * 16),
             users = numbers(ids.size() * 4), bias = numbers(1);
  const int64_t one = 1;
  const int32_t seen[4] = {1, 2, 3, 4};
  const VariableWrite writes[] = {{0, VariableWrite::kGradient, weights.data()},
                                  {5, VariableWrite::kGradient, kernel.data()},
                                  {1, VariableWrite::kGradient, bias.data()},
                                  {2, VariableWrite::kAssignAdd, &one},
                                  {3, VariableWrite::kAssignAdd, seen}};
  const RowsWrite rows[] = {{100, ids, items.data()}, {101, ids, users.data()}};
  PsSession session = cluster->Session(function);
  session.BeginStep(step);
  return session.Push(writes, rows);
}

class RestoreOnOtherPsCountTest : public ::testing::TestWithParam<std::pair<uint32_t, uint32_t>> {
 protected:
  RestoreOnOtherPsCountTest() : directory_(*TempDirectory::Create("muster_other_ps_count_test")) {}

  // Each server alone, so that the cuts are of different steps.
  pb::SaveReply Save(PsCluster* cluster, size_t server, const std::string& directory) {
    pb::SaveRequest request;
    *request.mutable_context() = cluster->context();
    request.set_directory(JoinPath(directory_.path(), directory));
    request.set_file(absl::StrCat("ps-", server));
    const auto reply = cluster->server(server).Save(request);
    EXPECT_THAT(reply, testing::IsOk());
    return reply.ok() ? *reply : pb::SaveReply();
  }
  uint64_t Restore(PsCluster* cluster, uint32_t servers, const std::string& directory,
                   const Files& files) {
    uint64_t updates = 0;
    for (uint32_t s = 0; s < servers; ++s) {
      pb::RestoreRequest request;
      *request.mutable_context() = cluster->context();
      request.set_directory(JoinPath(directory_.path(), directory));
      for (const auto& file : files) *request.add_files() = file;
      const auto reply = cluster->server(s).Restore(request);
      EXPECT_THAT(reply, testing::IsOk());
      if (reply.ok()) updates += reply->updates();
    }
    return updates;
  }

  TempDirectory directory_;
};

TEST_P(RestoreOnOtherPsCountTest, RestoreOnOtherPsCount) {
  const auto [from, to] = GetParam();
  PsCluster undisturbed(to), saved(from), restored(to);
  MU_ASSERT_OK(undisturbed.Configure());
  MU_ASSERT_OK(saved.Configure());
  MU_ASSERT_OK(restored.Configure());
  Files files(from);
  uint64_t updates = 0;
  for (uint32_t step = 0; step < kSteps; ++step) {
    for (uint64_t function = 1; function <= kFunctions; ++function) {
      MU_ASSERT_OK(PushStep(&undisturbed, function, step));
      MU_ASSERT_OK(PushStep(&saved, function, step));
      // Server s is cut in the middle of step 2 + s.
      if (function == 1 && step >= 2 && step < 2 + from) {
        const pb::SaveReply reply = Save(&saved, step - 2, "first");
        files[step - 2] = reply.file();
        updates += reply.updates();
      }
    }
  }
  EXPECT_EQ(Restore(&restored, to, "first", files), updates);
  // Some steps come again; then the state, of memories inherited and its own, is saved and restored
  // once more.
  for (uint32_t step = 0; step < 4; ++step) {
    for (uint64_t function = 1; function <= kFunctions; ++function)
      MU_ASSERT_OK(PushStep(&restored, function, step));
  }
  Files again;
  for (uint32_t s = 0; s < to; ++s) again.push_back(Save(&restored, s, "second").file());
  PsCluster last(from);
  MU_ASSERT_OK(last.Configure());
  Restore(&last, from, "second", again);
  for (PsCluster* cluster : {&restored, &last}) {
    for (uint32_t step = 0; step < kSteps; ++step) {
      for (uint64_t function = 1; function <= kFunctions; ++function)
        MU_ASSERT_OK(PushStep(cluster, function, step));
    }
    EXPECT_TRUE(StateOf(cluster) == StateOf(&undisturbed));
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, RestoreOnOtherPsCountTest,
                         ::testing::Values(std::pair(2u, 3u), std::pair(3u, 2u), std::pair(4u, 1u),
                                           std::pair(1u, 1u)),
                         [](const auto& info) {
                           return absl::StrCat(info.param.first, "To", info.param.second);
                         });

}  // namespace
}  // namespace mu
