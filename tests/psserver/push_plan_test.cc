// A push to several partitions, some of which inherited it from the checkpoint they came from.
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "psserver/pull.h"
#include "psserver/push.h"
#include "tests/psserver/frames.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::Bytes;
using testing::Frame;

constexpr uint32_t kBias = 1, kUsers = 101;  // SGD at 0.5, from zero
constexpr size_t kRows = 3, kDim = 4;

class PushPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(store_.Configure(testing::SmallModel(1), 0));
    // One row in each of the first partitions.
    const auto& users = *store_.directory()->table(kUsers);
    for (int64_t id = 0; ids_.size() < kRows; ++id) {
      if (users.definition->PartitionOf(static_cast<uint64_t>(id)) == ids_.size())
        ids_.push_back(id);
    }
  }

  // Gradients: row r's are r + 1, bias' is 9. What `inherited` names is left alone.
  void Push(const std::set<uint32_t>& partitions, bool bias) {
    const PushId id{7, 0, 0};
    auto inherited = std::make_shared<InheritedMemory>();
    AppliedSteps steps;
    steps.Add(id);
    const size_t memory = inherited->Add(steps);
    for (const uint32_t p : partitions)
      inherited->Inherit({PartitionKey::Kind::kTable, kUsers, p}, memory);
    if (bias) inherited->Inherit({PartitionKey::Kind::kVariable, kBias, 0}, memory);
    AdmittedPush push;
    push.id = id;
    push.inherited = inherited;

    pb::PushRequest request;
    pb::VariableUpdate& update = *request.add_variables();
    update.set_variable(kBias);
    update.set_kind(pb::VariableUpdate::GRADIENT);
    auto& rows = *request.add_tables();
    rows.set_table(kUsers);
    std::vector<float> gradients;
    for (uint32_t r = 0; r < kRows; ++r) {
      rows.add_partitions(r);
      rows.add_counts(1);
      gradients.insert(gradients.end(), kDim, static_cast<float>(r + 1));
    }
    // Everything begins at a multiple of 8.
    const std::string payload = Bytes(ids_) + Bytes<float>({9, 0}) + Bytes(gradients);
    const auto directory = store_.directory();
    MU_ASSERT_OK_AND_ASSIGN(PushPlan plan, PushPlan::Check(*directory, request, payload));
    plan.Skip(push);
    plan.Apply();
  }
  // Bias, then the first number of each row.
  std::vector<float> Values() {
    pb::PullRequest request;
    request.add_variables()->set_variable(kBias);
    auto& rows = *request.add_tables();
    rows.set_table(kUsers);
    for (uint32_t r = 0; r < kRows; ++r) {
      rows.add_partitions(r);
      rows.add_counts(1);
    }
    const auto reply = ExecutePull(*store_.directory(), request, Bytes(ids_), 1 << 20);
    EXPECT_THAT(reply, testing::IsOk());
    pb::PullReply header;
    const auto payload = ParseFrame(*reply, &header);
    std::vector<float> values(payload->size() / sizeof(float));
    std::memcpy(values.data(), payload->data(), payload->size());
    std::vector<float> firsts = {values[0]};
    for (size_t r = 0; r < kRows; ++r) firsts.push_back(values[values.size() - (kRows - r) * kDim]);
    return firsts;
  }

  Store store_;
  std::vector<int64_t> ids_;
};

TEST_F(PushPlanTest, EachPartitionThatIsLeftGetsItsOwnGradients) {
  for (uint32_t mask = 0; mask < 16; ++mask) {
    SCOPED_TRACE(mask);
    const std::vector<float> before = Values();
    std::set<uint32_t> inherited;
    for (uint32_t r = 0; r < kRows; ++r) {
      if ((mask >> r & 1) != 0) inherited.insert(r);
    }
    const bool bias = (mask & 8) != 0;
    Push(inherited, bias);
    std::vector<float> expected = before;
    if (!bias) expected[0] -= 4.5f;
    for (uint32_t r = 0; r < kRows; ++r) {
      if (!inherited.contains(r)) expected[1 + r] -= 0.5f * static_cast<float>(r + 1);
    }
    EXPECT_EQ(Values(), expected);
  }
}

}  // namespace
}  // namespace mu
