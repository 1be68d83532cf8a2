// Keys of a job file whose effect is seen only behind all processes. Each of them acts far from
// where it is read, and one that is dropped on its way looks like a job that trains a little worse.
#include <gmock/gmock.h>

#include <algorithm>

#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/rpc/transport.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "proto/coordinator.pb.h"
#include "tests/integration/cli/checkpoint_floats.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::EndsWith;
using ::testing::FloatNear;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::SizeIs;

class OptionsTest : public testing::CliTest {
 protected:
  // Trains the small job, changed by --set; gives its report.
  nlohmann::json Train(const std::vector<std::string>& settings,
                       const std::string& checkpoint = "") {
    std::vector<std::string> args = {"train",
                                     Job(),
                                     "--local",
                                     absl::StrCat("--workers=", workers_),
                                     "--report=" + Path("report.json"),
                                     absl::StrCat("--job_dir=", Path("run"), ++trained_)};
    if (!checkpoint.empty()) args.push_back("--checkpoint=" + checkpoint);
    for (const std::string& setting : settings) {
      args.push_back("--set");
      args.push_back(setting);
    }
    EXPECT_EQ(Run(args), 0) << Output();
    return nlohmann::json::parse(ReadFile(Path("report.json")).value_or(""), nullptr, false);
  }
  std::vector<std::string> Checkpoints() const {
    return ListCheckpoints(absl::StrCat(Path("run"), trained_, "/checkpoints"))
        .value_or(std::vector<std::string>());
  }
  std::string Log() const {
    return ReadFile(absl::StrCat(Path("run"), trained_, "/logs/coordinator.log")).value_or("");
  }
  double Loss(const std::vector<std::string>& settings, const std::string& checkpoint = "") {
    return Train(settings, checkpoint)["train_loss"].get<double>();
  }

  static constexpr int kServers = 2;  // as many as there are without --ps
  int workers_ = 2;

 private:
  int trained_ = 0;
};

TEST_F(OptionsTest, CheckpointsComeAndGoAsTheJobSays) {
  const std::vector<std::string> often = {"training.epochs=40", "training.steps_per_function=10",
                                          "checkpoint.every=never", "checkpoint.every_steps=100"};
  const auto with = [&](const std::string& keep) {
    std::vector<std::string> settings = often;
    settings.push_back("checkpoint.keep=" + keep);
    return settings;
  };
  Train(with("0"));
  EXPECT_THAT(Checkpoints(), SizeIs(Ge(2u))) << "one by its steps and the last one";
  Train(with("1"));
  EXPECT_THAT(Checkpoints(), SizeIs(1u));
  EXPECT_THAT(Checkpoints().back(), Not(EndsWith("-00000001"))) << "the newest stays";
  Train({"checkpoint.every=never"});
  EXPECT_THAT(Checkpoints(), SizeIs(1u)) << "the last one only";
}

// Steps of one record, so short that a call always takes a large share.
TEST_F(OptionsTest, FunctionsPackAsManyStepsAsTheGapNeeds) {
  std::string data = "user,item,rating\n";
  for (int i = 0; i < 8000; ++i) absl::StrAppend(&data, i % 10, ",", i % 20, ",", i % 5, "\n");
  WriteText("data.csv", data);
  const auto steps = [&](const std::string& max_gap) {
    return Train({"training.batch_size=1", "optimizer={sgd: {learning_rate: 0.001}}",
                  "training.max_gap=" + max_gap})["steps_per_function"]
        .get<int>();
  };
  EXPECT_GT(steps("0.000001"), 60) << "limited only by what is left";
  const nlohmann::json usual =
      Train({"training.batch_size=1", "optimizer={sgd: {learning_rate: 0.001}}"});
  EXPECT_GT(usual["steps_per_function"].get<int>(), 1) << "a call takes more than a hundredth";
}

// Each step takes eight times as long as it has to, so a few of them hide a call.
TEST_F(OptionsTest, FunctionsOfSlowStepsAreShort) {
  environment_ = {"MUSTER_WORKER_SLOW_DOWN=8"};
  const auto steps = [&](const std::vector<std::string>& more) {
    std::vector<std::string> settings = {"training.batch_size=2",
                                         "optimizer={sgd: {learning_rate: 0.001}}"};
    settings.insert(settings.end(), more.begin(), more.end());
    return Train(settings)["steps_per_function"].get<int>();
  };
  // What is left in the middle would allow 62.
  EXPECT_THAT(steps({}), Lt(30)) << "no more than the default needs";
  EXPECT_EQ(steps({"training.max_gap=1", "training.max_steps=300"}), 1);
}

TEST_F(OptionsTest, WarmUpAndOptimizersParametersReachTheServers) {
  const std::string epochs = "training.epochs=5";
  // Without any training the mean of (0.5 .. 4.5 - 0)^2 is 8.25.
  EXPECT_THAT(Loss({epochs, "training.warmup_steps=0"}), Lt(4.0));
  EXPECT_THAT(Loss({epochs, "training.warmup_steps=100000000"}), Gt(7.0));
  const std::string adagrad =
      "optimizer={adagrad: {learning_rate: 0.1, initial_accumulator: ACCUMULATOR, epsilon: "
      "EPSILON}}";
  const auto loss = [&](const std::string& accumulator, const std::string& epsilon) {
    return Loss({epochs, absl::StrReplaceAll(
                             adagrad, {{"ACCUMULATOR", accumulator}, {"EPSILON", epsilon}})});
  };
  EXPECT_THAT(loss("0.1", "0"), Lt(4.0));
  EXPECT_THAT(loss("1e12", "0"), Gt(7.0));
  EXPECT_THAT(loss("0.1", "1e6"), Gt(7.0));
  // Gradients that are cut to nothing.
  const std::string usual =
      absl::StrReplaceAll(adagrad, {{"ACCUMULATOR", "0.1"}, {"EPSILON", "0"}});
  EXPECT_THAT(Loss({epochs, usual, "training.clip_by_value=1e-6"}), Gt(7.0));
  EXPECT_THAT(Loss({epochs, usual, "training.clip_by_global_norm=1e-6"}), Gt(7.0));
}

TEST_F(OptionsTest, SchedulesAndRulesOfParametersReachTheServers) {
  const std::vector<std::string> settings = {"training.epochs=5", "training.warmup_steps=0"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> all = settings;
    all.push_back(more);
    return all;
  };
  EXPECT_THAT(Loss(with("optimizer={adam: {learning_rate: 0.1}}")), Lt(4.0));
  EXPECT_THAT(Loss(with("training.schedule={step: {at: [1], factor: 0.000001}}")), Gt(7.0));
  EXPECT_THAT(Loss(with("parameters=[{match: \"*\", learning_rate_factor: 0.000001}]")), Gt(7.0));
}

TEST_F(OptionsTest, AWarningSaysThatARoundHasMoreStepsThanThereAreWorkers) {
  const std::string warning =
      "a synchronous round takes 3 steps (replicas), and there are 2 workers, so some compute "
      "several of one round";
  const nlohmann::json report = Train({"training.mode=sync", "training.sync={replicas: 3}"});
  EXPECT_EQ(report["warnings"], nlohmann::json({warning}));
  const std::vector<std::string> shown = absl::StrSplit(Output(), warning);
  const std::vector<std::string> logged = absl::StrSplit(Log(), warning);
  EXPECT_THAT(shown, SizeIs(2)) << "while it trains, and once";
  EXPECT_THAT(logged, SizeIs(2)) << "once";
  EXPECT_EQ(Train({"training.mode=sync", "training.sync={replicas: 2}"})["warnings"],
            nlohmann::json::array());
}

// One worker, so that both trainings take the same steps.
TEST_F(OptionsTest, MicroBatchesTrainAsWholeBatchesDo) {
  workers_ = 1;
  const auto train = [&](const std::string& micro_batches) {
    return Train({"training.epochs=3", "training.warmup_steps=0", "training.batch_size=30",
                  "training.clip_by_global_norm=0.5", "optimizer={adagrad: {learning_rate: 0.1}}",
                  "training.micro_batches=" + micro_batches});
  };
  const nlohmann::json whole = train("1"), sliced = train("4");
  EXPECT_THAT(whole["train_loss"].get<double>(), Lt(4.0));
  EXPECT_NEAR(sliced["train_loss"].get<double>(), whole["train_loss"].get<double>(), 1e-4);
  EXPECT_EQ(sliced["steps"], whole["steps"]);
  EXPECT_EQ(sliced["samples"], whole["samples"]);
}

// A round of four workers' steps is a step with four times the batch.
TEST_F(OptionsTest, RoundsTrainAsTheLargeBatchDoes) {
  const std::vector<std::string> common = {"training.epochs=6", "training.warmup_steps=0",
                                           "optimizer={adagrad: {learning_rate: 0.1}}"};
  const auto train = [&](int workers, const std::vector<std::string>& more) {
    workers_ = workers;
    std::vector<std::string> settings = common;
    settings.insert(settings.end(), more.begin(), more.end());
    const nlohmann::json report = Train(settings);
    EXPECT_FALSE(Checkpoints().empty());
    return std::pair(report, Checkpoints().empty() ? "" : Checkpoints().back());
  };
  const auto [rounds, of_rounds] =
      train(4, {"training.batch_size=20", "training.mode=sync", "training.sync={replicas: 4}"});
  const auto [large, of_large] =
      train(1, {"training.batch_size=80", "training.functions_in_flight=1"});
  EXPECT_EQ(large["steps"], 6 * 2000 / 80);
  EXPECT_EQ(rounds["sync"]["rounds"], large["steps"]);
  EXPECT_EQ(rounds["steps"], 6 * 2000 / 20);
  EXPECT_EQ(rounds["samples"], large["samples"]);
  EXPECT_THAT(large["train_loss"].get<double>(), Lt(7.0)) << "of 8.25 without training";
  EXPECT_NEAR(rounds["train_loss"].get<double>(), large["train_loss"].get<double>(), 1e-4);
  const auto expected = testing::FloatsOf(of_large, kServers);
  const auto values = testing::FloatsOf(of_rounds, kServers);
  EXPECT_THAT(expected, SizeIs(Gt(0u)));
  ASSERT_THAT(values, SizeIs(expected.size()));
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(values.contains(name)) << name;
    EXPECT_THAT(values.at(name), Pointwise(FloatNear(1e-3f), tensor)) << name;
  }
}

// The steps of the run whose values it begins with are counted on, but are no part of its schedule.
TEST_F(OptionsTest, AScheduleBeginsWithTheRun) {
  const auto steps =
      Train({"training.epochs=5", "optimizer={sgd: {learning_rate: 0.000001}}"})["steps"]
          .get<uint64_t>();
  const std::string checkpoint = Checkpoints().back();
  const std::string schedule =
      absl::StrCat("training.schedule={step: {at: [", steps, "], factor: 0.000001}}");
  EXPECT_THAT(Loss({"training.epochs=5", "training.warmup_steps=0", schedule}, checkpoint),
              Lt(4.0));
}

// The most functions that a worker was seen to have at the same time, until `enough` is met.
uint32_t MostInFlight(const std::string& address, uint32_t enough) {
  constexpr int kLooks = 300;  // at least
  const std::unique_ptr<Transport> transport = NewGrpcTransport();
  const std::shared_ptr<Channel> channel = transport->Connect(address, pb::ROLE_PSSERVER);
  uint32_t most = 0;
  int looks = 0;
  EXPECT_TRUE(testing::Eventually([&] {
    const auto status =
        Call<pb::GetStatusReply>(*channel, "/muster.Coordinator/GetStatus", pb::GetStatusRequest());
    EXPECT_THAT(status, testing::IsOk());
    if (!status.ok()) return true;
    for (const pb::MemberStatus& member : status->members())
      most = std::max(most, member.in_flight());
    return ++looks >= kLooks && most >= enough;
  }));
  return most;
}

TEST_F(OptionsTest, AWorkerHasAsManyFunctionsAsTheJobSays) {
  for (const uint32_t in_flight : {1u, 5u}) {
    const auto training = StartTraining({"--local", "--workers=1", "--ps=1", "--set",
                                         "training.steps_per_function=10", "--set",
                                         absl::StrCat("training.functions_in_flight=", in_flight)});
    WaitForSteps();
    EXPECT_EQ(MostInFlight(ListenAddress(), in_flight), in_flight);
    MU_EXPECT_OK(training->Kill(SIGINT));
    EXPECT_EQ(ExitOf(training.get()), 128 + SIGINT) << Output();
    MU_EXPECT_OK(RemoveTree(Path("run")));
  }
}

}  // namespace
}  // namespace mu
