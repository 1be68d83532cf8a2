// The modes of training, through the real coordinator, while processes are killed: each record is
// used once per epoch, and the report says what each mode did.
#include <gmock/gmock.h>

#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;

constexpr int kEpochs = 20, kRecords = 2000, kBatch = 4;

class ModesCli : public testing::CliTest {
 protected:
  static constexpr char kTraining[] = "epochs: 1, batch_size: 32";

  // The report of a training with these keys, whose daemons are killed.
  nlohmann::json Train(const std::string& keys) {
    const std::string job =
        Job({{kTraining, absl::StrCat("epochs: ", kEpochs, ", batch_size: ", kBatch, ", ", keys)},
             {"training:", "checkpoint: {every: 1s}\ntraining:"}});
    EXPECT_EQ(Run({"train", job, "--local", "--workers=3", "--ps=2", "--job_dir=" + Path("run"),
                   "--chaos=worker:kill:every=400ms:count=4,ps:kill:every=900ms:count=1,seed=3"}),
              0)
        << Output();
    const auto report = Report(Path("run/report.json"));
    EXPECT_EQ(report["status"], "done");
    EXPECT_EQ(report["samples"], kEpochs * kRecords);
    EXPECT_EQ(report["steps"], kEpochs * kRecords / kBatch);
    EXPECT_THAT(report["failure_totals"]["failures"], Gt(0)) << "nothing was killed";
    return report;
  }
};

TEST_F(ModesCli, LateGradientsAreCountedAndBounded) {
  const auto report =
      Train("steps_per_function: 10, mode: async, staleness: {discount: inverse, max: 1}");
  const auto& staleness = report["staleness"];
  uint64_t steps = 0;
  for (const auto& late : staleness["histogram"]) {
    EXPECT_THAT(late["to"].get<int>(), Le(1));
    steps += late["steps"].get<uint64_t>();
  }
  EXPECT_EQ(steps, staleness["steps"].get<uint64_t>());
  EXPECT_THAT(steps,
              AllOf(Gt(kEpochs * kRecords / kBatch / 2u), Le(2u * kEpochs * kRecords / kBatch)));
  EXPECT_THAT(staleness["refused"].get<uint64_t>(), Gt(0u));
  EXPECT_TRUE(report["bounded_staleness"].is_null());
}

TEST_F(ModesCli, FunctionsWaitForTheBoundOnStaleness) {
  const auto report =
      Train("steps_per_function: 10, mode: bounded_staleness, bounded_staleness: {steps: 20}");
  EXPECT_EQ(report["bounded_staleness"]["steps"], 20);
  EXPECT_THAT(report["bounded_staleness"]["functions_waited"].get<uint64_t>(), Ge(10u));
  EXPECT_TRUE(report["staleness"].is_null());
}

TEST_F(ModesCli, RoundsAreAppliedOnceAndWhole) {
  const auto report = Train("mode: sync, sync: {replicas: 2, backup_workers: 1}");
  const auto& sync = report["sync"];
  EXPECT_EQ(sync["replicas"], 2);
  EXPECT_EQ(sync["backup_workers"], 1);
  const auto rounds = sync["rounds"].get<uint64_t>(), small = sync["small_rounds"].get<uint64_t>();
  const auto steps = sync["steps_in_rounds"].get<uint64_t>();
  EXPECT_THAT(steps, Ge(uint64_t{kEpochs * kRecords / kBatch})) << "some were rolled back";
  const uint64_t repeated = report["failure_totals"]["steps_repeated"];
  EXPECT_THAT(steps, Le(kEpochs * kRecords / kBatch + repeated)) << "more than the report names";
  EXPECT_EQ(steps, 2 * rounds - small) << "a small round of two has one step";
  EXPECT_THAT(small, Le(rounds / 10));
  EXPECT_TRUE(report["staleness"].is_null());
  EXPECT_TRUE(report["bounded_staleness"].is_null());
}

TEST_F(ModesCli, KeysOfAnotherModeAreRefusedAtTheirPlace) {
  const std::string job = Job(
      {{kTraining, "mode: bounded_staleness, staleness: {max: 2}, bounded_staleness: {steps: 9}"}});
  EXPECT_EQ(Run({"check", job}), 2);
  EXPECT_THAT(Output(), HasSubstr(job + ":14:37: `training.staleness` belongs to mode async, and "
                                        "training.mode is bounded_staleness; remove one of them"));
}

TEST_F(ModesCli, RoundsWithRecoveryOfSingleServersAreRefusedAtTheirPlace) {
  const std::string job = Job({{kTraining, "mode: sync, sync: {replicas: 2}"},
                               {"training:", "recovery: shard\ntraining:"}});
  EXPECT_EQ(Run({"train", job, "--local", "--workers=1", "--ps=1", "--job_dir=" + Path("run")}), 2);
  EXPECT_THAT(Output(), HasSubstr(job + ":14:11: `recovery` is shard, and with training.mode: sync "
                                        "a server that goes back alone would lack rounds"));
}

}  // namespace
}  // namespace mu
