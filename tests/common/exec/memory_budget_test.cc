#include "common/exec/memory_budget.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "common/base/error_kind.h"
#include "common/exec/aligned_buffer.h"
#include "common/exec/executor.h"
#include "tests/testing/fake_parameters.h"
#include "tests/testing/graph_maker.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::GraphMaker;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMegabyte = size_t{1} << 20;

class MemoryBudgetTest : public ::testing::Test {
 protected:
  ~MemoryBudgetTest() override { budget_.SetLimit(0); }
  MemoryBudget& budget_ = MemoryBudget::Process();
};

TEST_F(MemoryBudgetTest, BuffersTakeAndGive) {
  const size_t before = budget_.used();
  {
    AlignedBuffer buffer;
    ASSERT_NE(buffer.TryReserve(kMegabyte), nullptr);
    EXPECT_EQ(budget_.used() - before, buffer.size());
    AlignedBuffer other = std::move(buffer);
    EXPECT_EQ(budget_.used() - before, other.size());
    ASSERT_NE(other.TryReserve(2 * kMegabyte), nullptr);
    EXPECT_EQ(budget_.used() - before, other.size()) << "the smaller one was given back";
  }
  EXPECT_EQ(budget_.used(), before);
}

TEST_F(MemoryBudgetTest, RefusesWhatGoesBeyondTheLimit) {
  const size_t before = budget_.used();
  budget_.SetLimit(before + 2 * kMegabyte);
  AlignedBuffer first, second;
  ASSERT_NE(first.TryReserve(kMegabyte), nullptr);
  EXPECT_EQ(second.TryReserve(kMegabyte), nullptr) << "with the eighth more that buffers take";
  EXPECT_EQ(second.size(), 0u);
  EXPECT_EQ(budget_.used() - before, first.size()) << "what was refused was not taken";
  EXPECT_NE(second.TryReserve(kMegabyte / 2), nullptr);
  // What a kernel cannot do without is given, and counted.
  AlignedBuffer scratch;
  EXPECT_NE(scratch.Reserve(kMegabyte), nullptr);
  EXPECT_GT(budget_.used(), budget_.limit());
}

// The function's error: the op, its place, and what to do; a smaller batch then runs.
TEST_F(MemoryBudgetTest, AStepThatNeedsMoreFailsWithTheOpAndTheFlag) {
  GraphMaker g;
  const auto x = g.Column("x", kFloat32, {-1, 1024});
  g.Return("y", g.Op("exp", {x}));
  testing::FakeParameterAccess access(0.01f);
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(g.function(), access.routing()));
  Executor executor(compiled);
  const auto run = [&](int64_t rows) {
    Batch batch;
    batch.names = {"x"};
    Tensor ones(kFloat32, {rows, 1024});
    std::fill_n(ones.data<float>(), rows * 1024, 1.0f);
    batch.columns = {ones};
    batch.records = static_cast<uint32_t>(rows);
    std::vector<Tensor> returns;
    return executor.RunStep({.batch = &batch}, access, &returns);
  };
  budget_.SetLimit(budget_.used() + kMegabyte);
  const absl::Status refused = run(1000);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("exp"), HasSubstr("[1000, 1024]"), HasSubstr("--memory_limit")));
  EXPECT_EQ(KindOf(refused), pb::ERROR_USER);
  MU_EXPECT_OK(run(100));
}

}  // namespace
}  // namespace mu
