// Random numbers of steps: those of a step's place in the job, however steps are packed, whoever
// runs them and however often.
#include <cmath>

#include "coordinator/frontend/ops.h"
#include "tests/conformance/memory_cluster.h"

namespace mu {
namespace {

using testing::MemoryCluster;

class RandomSteps : public ::testing::Test {
 protected:
  struct Job {
    std::unique_ptr<MemoryCluster> cluster;
    Variable sum;
    Function step;
    Function read;  // changes nothing
  };

  // Each step returns a random number, which is also the gradient of `sum`.
  static absl::StatusOr<Job> Start(int workers) {
    Job job;
    MU_ASSIGN_OR_RETURN(job.cluster,
                        MemoryCluster::Start(workers, 1, std::make_shared<FaultPlan>(1)));
    Coordinator& c = job.cluster->coordinator();
    MU_ASSIGN_OR_RETURN(job.sum,
                        c.CreateVariable({.name = "sum", .optimizer = Sgd{.learning_rate = 1}}));
    MU_ASSIGN_OR_RETURN(job.step, c.DefineFunction("step", [&](FunctionBuilder& f) {
      const Sym draw = RandomUniform(job.sum, 1, 2);
      f.Minimize(job.sum * draw);
      f.Return("draw", draw);
    }));
    MU_ASSIGN_OR_RETURN(job.read, c.DefineFunction("read", [&](FunctionBuilder& f) {
      f.Return("draw", RandomUniform(job.sum, 1, 2));
    }));
    return job;
  }

  static std::vector<float> Run(Job& job, const std::vector<uint32_t>& packs) {
    return Run(job, job.step, packs);
  }
  static std::vector<float> Run(Job& job, const Function& function,
                                const std::vector<uint32_t>& packs) {
    std::vector<RemoteValue> values;
    for (const uint32_t steps : packs)
      values.push_back(job.cluster->coordinator().Schedule(function, {.steps = steps}));
    MU_EXPECT_OK(job.cluster->coordinator().Join());
    std::vector<float> draws;
    for (const RemoteValue& value : values) {
      const auto result = value.Fetch();
      EXPECT_TRUE(result.ok()) << result.status();
      if (!result.ok()) continue;
      for (size_t step = 0; step < result->steps(); ++step) {
        const auto draw = result->Get(step, "draw");
        EXPECT_TRUE(draw.ok()) << draw.status();
        draws.push_back(draw.ok() ? *draw->data<float>() : NAN);
      }
    }
    return draws;
  }
};

TEST_F(RandomSteps, AreThoseOfTheirPlacesInTheJob) {
  MU_ASSERT_OK_AND_ASSIGN(Job one, Start(1));
  const std::vector<float> draws = Run(one, {2, 1, 3});
  ASSERT_EQ(draws.size(), 6u);
  for (size_t i = 0; i < draws.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(draws[i], draws[j]);
  }
  MU_ASSERT_OK_AND_ASSIGN(Job two, Start(2));
  EXPECT_EQ(Run(two, {1, 1, 1, 1, 2}), draws);
}

// Dropout that stays on in predictions would else drop the same units in each call.
TEST_F(RandomSteps, OfWhatOnlyReadsAreOthersEachTime) {
  MU_ASSERT_OK_AND_ASSIGN(Job one, Start(1));
  const std::vector<float> draws = Run(one, one.read, {1, 1, 1});
  ASSERT_EQ(draws.size(), 3u);
  for (size_t i = 0; i < draws.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(draws[i], draws[j]);
  }
  for (const std::vector<uint32_t>& packs :
       std::vector<std::vector<uint32_t>>{{3}, {2, 1}, {1, 2}}) {
    MU_ASSERT_OK_AND_ASSIGN(Job two, Start(2));
    EXPECT_EQ(Run(two, two.read, packs), draws);
  }
  // Training draws the same, whatever is read meanwhile.
  const std::vector<float> trained = Run(one, {2});
  MU_ASSERT_OK_AND_ASSIGN(Job undisturbed, Start(1));
  EXPECT_EQ(Run(undisturbed, {1, 1}), trained);
  const std::vector<float> later = Run(one, one.read, {1});
  ASSERT_EQ(later.size(), 1u);
  for (const float draw : draws) EXPECT_NE(draw, later[0]);
}

TEST_F(RandomSteps, AreTheSameAfterARestore) {
  MU_ASSERT_OK_AND_ASSIGN(Job job, Start(1));
  Run(job, {3});
  const std::string directory = job.cluster->directory() + "/saved";
  MU_ASSERT_OK(job.cluster->coordinator().Save(directory));
  const std::vector<float> lost = Run(job, {4});
  MU_ASSERT_OK(job.cluster->coordinator().Restore(directory));
  EXPECT_EQ(Run(job, {4}), lost);
}

// What a server's loss makes run again applies what was drawn, and returned, the first time.
TEST_F(RandomSteps, RepeatsDrawTheSame) {
  MU_ASSERT_OK_AND_ASSIGN(Job job, Start(2));
  Coordinator& c = job.cluster->coordinator();
  c.EnableRecovery(job.cluster->directory() + "/checkpoints");
  std::vector<float> draws = Run(job, {1});
  MU_ASSERT_OK(c.Checkpoint());
  for (const float draw : Run(job, {1, 2})) draws.push_back(draw);
  MU_ASSERT_OK(job.cluster->StartServer(0));  // the place is taken: back to the checkpoint
  for (const float draw : Run(job, {1})) draws.push_back(draw);
  float sum = 0;
  for (const float draw : draws) sum -= draw;
  MU_ASSERT_OK_AND_ASSIGN(const Tensor value, c.Read(job.sum));
  EXPECT_EQ(draws.size(), 5u);
  EXPECT_NEAR(*value.data<float>(), sum, 1e-4);
}

}  // namespace
}  // namespace mu
