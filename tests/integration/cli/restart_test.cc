// `coordinator train` that is killed and started again with the same job_dir.
#include "tests/integration/cli/restart.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/steady_now.h"

namespace mu {
namespace {

using ::testing::AnyOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using testing::kEpochs;
using testing::kRecords;
using testing::RestartTest;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::vector<std::string> KeysOf(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// The keys that docs/report.md promises, no others, and totals that are the sums.
void ExpectLedger(const nlohmann::json& report) {
  uint64_t steps = 0, samples = 0, updates = 0, failed = 0, left = 0;
  double recovery_ms = 0;
  std::map<int64_t, double> recoveries;  // of servers: their time, by when they ended
  std::map<std::string, uint64_t> lost;
  for (const nlohmann::json& failure : report["failures"]) {
    ASSERT_THAT(KeysOf(failure),
                UnorderedElementsAre("role", "index", "kind", "at_seconds", "detected_ms",
                                     "detection_latency_ms", "recovered_ms", "steps_repeated",
                                     "samples_repeated", "updates_rolled_back", "message"));
    EXPECT_THAT(failure["role"], AnyOf("worker", "psserver"));
    EXPECT_THAT(failure["kind"], AnyOf("died", "unreachable", "silent", "replaced", "left"));
    EXPECT_GE(failure["detection_latency_ms"].get<double>(), 0);
    EXPECT_LT(failure["detection_latency_ms"].get<double>(), 10e3) << "it was killed and reaped";
    EXPECT_NEAR(failure["detected_ms"].get<double>(), 1e3 * failure["at_seconds"].get<double>(), 1);
    (failure["kind"] == "left" ? left : failed) += 1;
    ++lost[failure["role"].get<std::string>()];
    steps += failure["steps_repeated"].get<uint64_t>();
    samples += failure["samples_repeated"].get<uint64_t>();
    updates += failure["updates_rolled_back"].get<uint64_t>();
    if (failure["role"] == "psserver" && !failure["recovered_ms"].is_null()) {
      const double took_ms = failure["recovered_ms"];
      recovery_ms += took_ms;
      double& longest = recoveries[std::llround(failure["detected_ms"].get<double>() + took_ms)];
      longest = std::max(longest, took_ms);
    }
  }
  const nlohmann::json& totals = report["failure_totals"];
  ASSERT_THAT(KeysOf(totals),
              UnorderedElementsAre("failures", "left", "steps_repeated", "samples_repeated",
                                   "updates_rolled_back", "without_progress_ms", "by_role"));
  EXPECT_EQ(totals["failures"], failed);
  EXPECT_EQ(totals["left"], left);
  EXPECT_EQ(totals["steps_repeated"], steps);
  EXPECT_EQ(totals["samples_repeated"], samples);
  EXPECT_EQ(totals["updates_rolled_back"], updates);
  // Those that were away together count once.
  double without_progress_ms = 0;
  for (const auto& [end, longest] : recoveries) without_progress_ms += longest;
  EXPECT_NEAR(totals["without_progress_ms"].get<double>(), without_progress_ms, 1);
  EXPECT_EQ(totals["by_role"].size(), lost.size());
  for (const auto& [role, count] : lost) {
    const nlohmann::json& of = totals["by_role"][role];
    ASSERT_THAT(KeysOf(of), UnorderedElementsAre("failures", "left", "recovered", "recovery_ms",
                                                 "longest_recovery_ms", "steps_repeated",
                                                 "updates_rolled_back", "samples_repeated"));
    EXPECT_EQ(of["failures"].get<uint64_t>() + of["left"].get<uint64_t>(), count) << role;
    EXPECT_GE(of["recovery_ms"].get<double>(), of["longest_recovery_ms"].get<double>()) << role;
    if (role == "psserver") {
      EXPECT_NEAR(of["recovery_ms"].get<double>(), recovery_ms, 1);
    }
  }
}

// How often each partition was changed, as the servers counted it, of all files of a checkpoint.
std::map<std::string, int64_t> UpdatesOf(const std::string& checkpoint) {
  std::map<std::string, int64_t> updates;
  for (const std::string& name : ListDirectory(checkpoint).value_or(std::vector<std::string>())) {
    if (!absl::EndsWith(name, ".safetensors")) continue;
    const std::string bytes = ReadFile(JoinPath(checkpoint, name)).value_or("");
    uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof(size));
    const auto header = nlohmann::json::parse(bytes.substr(8, size), nullptr, false);
    for (const auto& [tensor, entry] : header.items()) {
      if (!absl::EndsWith(tensor, "/updates")) continue;
      const uint64_t begin = entry["data_offsets"][0];
      std::memcpy(&updates[tensor], bytes.data() + 8 + size + begin, sizeof(int64_t));
    }
  }
  return updates;
}

TEST_F(RestartTest, CoordinatorKilledLocally) {
  const std::vector<std::string> args = {"train",       LongJob(), "--local",
                                         "--workers=1", "--ps=2",  "--job_dir=" + Path("run")};
  auto first = Start(args);
  WaitForCheckpoints(Path("run"), 2);
  MU_ASSERT_OK(first->Kill(SIGKILL));
  ExitOf(first.get());
  ExpectNoDaemonLeft(Path("run"), 3);
  EXPECT_EQ(Run(args), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("CONTINUES"));
  const auto report = Report(Path("run/report.json"));
  ExpectWhole(report);
  // The rate is that of this run, which began after at least 1,000 steps of four records.
  const double rate = report["samples_per_second"], seconds = report["train_seconds"];
  EXPECT_GT(rate, 0);
  EXPECT_LE(rate * seconds, kEpochs * kRecords - 1000 * 4 + 0.5);
  EXPECT_THAT(ReadFile(Path("run/logs/coordinator.log")).value_or(""),
              HasSubstr("the layout of 1 of 1 files is known"));
  // The same without a kill: what is trained does not differ in a bit.
  std::vector<std::string> undisturbed = args;
  undisturbed.back() = "--job_dir=" + Path("undisturbed");
  ASSERT_EQ(Run(undisturbed), 0) << Output();
  ExpectWhole(Report(Path("undisturbed/report.json")));
  const auto values = [&](const std::string& job_dir) {
    const auto checkpoints = Checkpoints(job_dir);
    EXPECT_FALSE(checkpoints.empty());
    std::string predictions = Path("predictions.csv");
    EXPECT_EQ(Run({"predict", LongJob(), "--local", "--workers=1", "--ps=1",
                   "--checkpoint=" + checkpoints.back(), "--out=" + predictions,
                   "--job_dir=" + Path("predict")}),
              0)
        << Output();
    return ReadFile(predictions).value_or("");
  };
  const std::string expected = values(Path("undisturbed"));
  EXPECT_GT(expected.size(), 1000u);
  EXPECT_EQ(values(Path("run")), expected);
}

// Killed in synchronous rounds, twice: each record counts once per epoch, each partition is changed
// as often as without a kill, and the result is that of the large batch.
TEST_F(RestartTest, RoundsContinueAfterTheCoordinatorIsKilled) {
  constexpr int kRoundEpochs = 4, kBatch = 4, kReplicas = 2;
  const auto job = [&](const std::string& keys) {
    LongJob();
    const std::string text = ReadFile(Path("job.yaml")).value_or("");
    const std::string training = absl::StrCat(
        "epochs: ", kEpochs, ", batch_size: 4, steps_per_function: 20, functions_in_flight: 1");
    EXPECT_THAT(text, HasSubstr(training));
    WriteText("job.yaml",
              absl::StrReplaceAll(text, {{training, absl::StrCat("epochs: ", kRoundEpochs, keys)},
                                         {"every_steps: 500", "every_steps: 200"}}));
    return Path("job.yaml");
  };
  const std::string keys =
      absl::StrCat(", batch_size: ", kBatch, ", mode: sync, sync: {replicas: ", kReplicas, "}");
  std::vector<std::string> args = {"train",       job(keys), "--local",
                                   "--workers=2", "--ps=2",  "--job_dir=" + Path("run")};
  std::string newest;
  for (int life = 1; life <= 2; ++life) {
    auto killed = Start(args);
    EXPECT_TRUE(testing::Eventually([&] {
      const auto complete = Checkpoints(Path("run"));
      return !complete.empty() && complete.back() != newest;
    })) << Output();
    MU_ASSERT_OK(killed->Kill(SIGKILL));
    EXPECT_EQ(ExitOf(killed.get()), -SIGKILL) << "it was done before it was killed";
    newest = Checkpoints(Path("run")).back();
  }
  EXPECT_EQ(Run(args), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("CONTINUES"));
  const auto report = Report(Path("run/report.json"));
  EXPECT_EQ(report["status"], "done");
  EXPECT_EQ(report["samples"], kRoundEpochs * kRecords);
  EXPECT_EQ(report["steps"], kRoundEpochs * kRecords / kBatch);

  args.back() = "--job_dir=" + Path("undisturbed");
  ASSERT_EQ(Run(args), 0) << Output();
  const auto undisturbed = Report(Path("undisturbed/report.json"));
  EXPECT_EQ(UpdatesOf(report["checkpoint"]), UpdatesOf(undisturbed["checkpoint"]));
  // As batches of the round's size, one after the other.
  args = {"train",
          job(absl::StrCat(", batch_size: ", kReplicas * kBatch, ", functions_in_flight: 1")),
          "--local",
          "--workers=1",
          "--ps=2",
          "--job_dir=" + Path("large")};
  ASSERT_EQ(Run(args), 0) << Output();
  const auto predicted = [&](const std::string& checkpoint) {
    std::vector<double> values;
    EXPECT_EQ(Run({"predict", Path("job.yaml"), "--local", "--workers=1", "--ps=1",
                   "--checkpoint=" + checkpoint, "--out=" + Path("predictions.csv"),
                   "--job_dir=" + Path("predict")}),
              0)
        << Output();
    const std::string lines = ReadFile(Path("predictions.csv")).value_or("");
    for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
      double value = 0;
      if (absl::SimpleAtod(line.substr(line.rfind(',') + 1), &value)) values.push_back(value);
    }
    return values;
  };
  const std::vector<double> values = predicted(report["checkpoint"]);
  EXPECT_THAT(values, SizeIs(::testing::Ge(size_t{kRecords})));
  EXPECT_THAT(values,
              ::testing::Pointwise(::testing::DoubleNear(1e-4),
                                   predicted(Report(Path("large/report.json"))["checkpoint"])));
}

// The second life ends before it takes a checkpoint: the third one continues from the first one's.
TEST_F(RestartTest, ContinuedTwiceFromOneCheckpoint) {
  std::vector<std::string> args = {"train",       LongJob(), "--local",
                                   "--workers=1", "--ps=1",  "--job_dir=" + Path("run")};
  std::vector<std::string> checkpoints;
  for (size_t life = 1; life <= 2; ++life) {
    auto killed = Start(args);
    if (life == 1) {
      WaitForCheckpoints(Path("run"), 1);
    } else {
      EXPECT_TRUE(testing::Eventually([&] {
        return Output().find("CONTINUES") != std::string::npos &&
               Output().find("\ntraining ") != std::string::npos;
      })) << Output();
    }
    MU_ASSERT_OK(killed->Kill(SIGKILL));
    ExitOf(killed.get());
    if (life == 1) {
      checkpoints = Checkpoints(Path("run"));
      args.insert(args.end(), {"--set", "checkpoint.every_steps=1000000"});
    }
  }
  EXPECT_EQ(Checkpoints(Path("run")), checkpoints) << "the second life took one";
  EXPECT_EQ(Run(args), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("CONTINUES"));
  ExpectWhole(Report(Path("run/report.json")));
}

// Such data is read anew; the steps still count once each.
TEST_F(RestartTest, CoordinatorOfPerWorkerDataKilled) {
  const auto job = [&] {
    LongJob();
    std::string text = ReadFile(Path("job.yaml")).value_or("");
    text = absl::StrReplaceAll(
        text, {{"    files: [data.csv]\n", "    files: [data.csv]\n    visitation: none\n"}});
    WriteText("job.yaml", text);
    return Path("job.yaml");
  };
  const std::vector<std::string> args = {"train",       job(),    "--local",
                                         "--workers=2", "--ps=1", "--job_dir=" + Path("run")};
  auto first = Start(args);
  WaitForCheckpoints(Path("run"), 2);
  MU_ASSERT_OK(first->Kill(SIGKILL));
  ExitOf(first.get());
  EXPECT_EQ(Run(args), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("CONTINUES"));
  ExpectWhole(Report(Path("run/report.json")));
}

// The servers die while nothing is trained yet: as they get their parameters, as the data are
// looked through.
TEST_F(RestartTest, ServersKilledWhileTheJobStarts) {
  // And later two more and some workers, so that the ledger has something to sum up.
  EXPECT_EQ(Run({"train", LongJob(), "--local", "--workers=1", "--ps=2", "--job_dir=" + Path("run"),
                 "--chaos=ps:kill:every=40ms:count=6,ps:kill:every=700ms:count=2,"
                 "worker:kill:every=400ms:count=3,seed=3"}),
            0)
      << Output();
  const auto report = Report(Path("run/report.json"));
  ExpectWhole(report);
  EXPECT_GT(report["failures"].size(), 0u);
  ExpectLedger(report);
  // Each with how it ended and what it said last.
  for (const auto& failure : report["failures"]) {
    if (failure["kind"] != "died") continue;
    EXPECT_THAT(failure["message"].get<std::string>(),
                ::testing::AllOf(HasSubstr(failure["role"].get<std::string>() + "-"),
                                 HasSubstr(" ended: killed by SIGKILL; its last lines in ")));
  }
}

TEST_F(RestartTest, AnotherJobInTheSameDirectoryIsRefused) {
  auto first =
      Start({"train", LongJob(), "--local", "--workers=1", "--ps=1", "--job_dir=" + Path("run")});
  WaitForCheckpoints(Path("run"), 1);
  MU_ASSERT_OK(first->Kill(SIGKILL));
  ExitOf(first.get());
  EXPECT_EQ(Run({"train", LongJob("0.02"), "--local", "--workers=1", "--ps=1",
                 "--job_dir=" + Path("run")}),
            2);
  EXPECT_THAT(Output(), HasSubstr("learning_rate"));
  EXPECT_THAT(Output(), HasSubstr("choose another job_dir"));
  EXPECT_FALSE(FileExists(Path("run/report.json"))) << "it is not for the refused one";
}

TEST_F(RestartTest, CoordinatorKilledWithDaemonsUp) {
  const std::string address = FreeAddress();
  const std::vector<std::string> args = {"train",       LongJob(), "--listen=" + address,
                                         "--workers=2", "--ps=2",  "--job_dir=" + Path("cluster")};
  auto first = Start(args);
  const auto daemons = StartDaemons(address);
  for (size_t life = 1; life <= 2; ++life) {
    WaitForCheckpoints(Path("cluster"), 2);
    MU_ASSERT_OK(first->Kill(SIGKILL));
    ExitOf(first.get());
    if (life == 2) break;
    first = Start(args);
    EXPECT_TRUE(testing::Eventually([&] {
      return Output().find("\ntraining ") != std::string::npos;
    })) << Output();
  }
  EXPECT_EQ(Run(args), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("CONTINUES"));
  const auto report = Report(Path("cluster/report.json"));
  ExpectWhole(report);
  EXPECT_EQ(report["failures"].size(), 0u);
  // They have served all three coordinators; the job is over, and they end well.
  ExpectSentHome(daemons);
  // Every step changed what it changes without a kill, once.
  ASSERT_EQ(Run({"train", LongJob(), "--local", "--workers=2", "--ps=2",
                 "--job_dir=" + Path("undisturbed")}),
            0)
      << Output();
  const auto undisturbed = Report(Path("undisturbed/report.json"));
  ExpectWhole(undisturbed);
  const auto expected = UpdatesOf(undisturbed["checkpoint"]);
  EXPECT_THAT(expected, SizeIs(Gt(2u)));
  int64_t sum = 0;
  for (const auto& [partition, updates] : expected) sum += updates;
  EXPECT_GE(sum, kEpochs * kRecords / 4) << "every step changes something";
  EXPECT_EQ(UpdatesOf(report["checkpoint"]), expected);
}

// As when a machine goes down, or a namespace is deleted: the servers leave, and nobody comes.
TEST_F(RestartTest, StoppedTogetherWithItsServers) {
  const std::string address = FreeAddress();
  const std::vector<std::string> args = {"train",       LongJob(), "--listen=" + address,
                                         "--workers=2", "--ps=2",  "--job_dir=" + Path("cluster")};
  auto first = Start(args);
  auto daemons = StartDaemons(address);
  WaitForCheckpoints(Path("cluster"), 1);
  const absl::Time asked = SteadyNow();
  for (const auto& daemon : daemons) MU_ASSERT_OK(daemon->Kill(SIGTERM));
  MU_ASSERT_OK(first->Kill(SIGTERM));
  EXPECT_EQ(ExitOf(first.get()), 143) << Output();
  EXPECT_LT(SteadyNow() - asked, absl::Minutes(1)) << "it waited for servers";
  EXPECT_THAT(Output(), HasSubstr("holds all steps that were done"));
  const auto stopped = Report(Path("cluster/report.json"));
  EXPECT_EQ(stopped["status"], "stopped");
  EXPECT_TRUE(FileExists(JoinPath(stopped["checkpoint"].get<std::string>(), "manifest.json")));
  daemons = StartDaemons(address);
  EXPECT_EQ(Run(args), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("CONTINUES from " + stopped["checkpoint"].get<std::string>()));
  ExpectWhole(Report(Path("cluster/report.json")));
}

TEST_F(RestartTest, AJobThatIsDoneIsNotTrainedAgain) {
  const std::vector<std::string> args = {"train", Job(), "--job_dir=" + Path("run"), "--workers=1",
                                         "--ps=1"};
  std::vector<std::string> again = args;
  again.push_back("--report=" + Path("asked.json"));
  ASSERT_EQ(Run(again), 0) << Output();
  const std::string report = ReadFile(Path("run/report.json")).value_or("");
  const std::vector<std::string> checkpoints = Checkpoints(Path("run"));
  EXPECT_EQ(ReadFile(Path("asked.json")).value_or(""), report);
  EXPECT_EQ(Run(again), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("it is done: nothing is trained"));
  EXPECT_THAT(Output(), HasSubstr("--train_again to train it again from the start"));
  EXPECT_EQ(ReadFile(Path("run/report.json")).value_or(""), report);
  EXPECT_EQ(Checkpoints(Path("run")), checkpoints);
  EXPECT_EQ(ReadFile(Path("asked.json")).value_or(""), report);
  EXPECT_GT(Report(Path("asked.json"))["steps"], 0);
  again.back() = "--report=" + Path("again.json");
  EXPECT_EQ(Run(again), 0) << Output();
  EXPECT_EQ(ReadFile(Path("again.json")).value_or(""), report);
  // Where that of a stop is left of it, the one that was asked for is all there is.
  MU_ASSERT_OK(WriteFileAtomic(Path("run/report.json"), R"({"status": "stopped"})"));
  again.back() = "--report=" + Path("asked.json");
  EXPECT_EQ(Run(again), 0) << Output();
  EXPECT_EQ(ReadFile(Path("asked.json")).value_or(""), report);
  again.back() = "--report=" + Path("empty.json");
  EXPECT_EQ(Run(again), 0) << Output();
  EXPECT_EQ(Report(Path("empty.json"))["steps"], 0);
  MU_ASSERT_OK(WriteFileAtomic(Path("run/report.json"), report));

  // Another job: its folder is refused, with what differs.
  EXPECT_EQ(Run({"train", Job({{"learning_rate: 0.1", "learning_rate: 0.2"}}),
                 "--job_dir=" + Path("run")}),
            2);
  EXPECT_THAT(Output(), HasSubstr("holds another job, which is done: "));
  EXPECT_THAT(Output(), HasSubstr("learning_rate"));
  EXPECT_EQ(ReadFile(Path("run/report.json")).value_or(""), report);

  // On request, and from values that are named.
  Job();
  again = args;
  again.push_back("--train_again");
  EXPECT_EQ(Run(again), 0) << Output();
  EXPECT_EQ(Report(Path("run/report.json"))["samples"], kRecords);
  EXPECT_GT(Checkpoints(Path("run")).size(), checkpoints.size());
  again.back() = "--checkpoint=" + checkpoints.back();
  EXPECT_EQ(Run(again), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("begins with " + checkpoints.back()));
}

// The command that began with another run's values continues its own run when it is given again.
TEST_F(RestartTest, AWarmStartIsContinued) {
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("other")}), 0) << Output();
  const std::vector<std::string> args = {"train",
                                         LongJob(),
                                         "--local",
                                         "--workers=1",
                                         "--ps=2",
                                         "--job_dir=" + Path("run"),
                                         "--checkpoint=" + Path("other")};
  auto first = Start(args);
  WaitForCheckpoints(Path("run"), 2);
  MU_ASSERT_OK(first->Kill(SIGKILL));
  ExitOf(first.get());
  EXPECT_THAT(Output(), HasSubstr("begins with " + Path("other/checkpoints/")));
  EXPECT_EQ(Run(args), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("CONTINUES"));
  EXPECT_THAT(Output(), ::testing::Not(HasSubstr("begins with")));
  ExpectWhole(Report(Path("run/report.json")));
}

// It died before its first checkpoint: it begins again, with the same values.
TEST_F(RestartTest, AWarmStartIsBegunAgain) {
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("other")}), 0) << Output();
  auto first = StartTraining({"--checkpoint=" + Path("other")});
  EXPECT_THAT(Checkpoints(Path("run")), SizeIs(Gt(0u))) << "it takes one before it trains";
  MU_ASSERT_OK(first->Kill(SIGKILL));
  ExitOf(first.get());
  MU_ASSERT_OK(RemoveTree(Path("run/checkpoints")));  // as if it had died before that
  auto second = StartTraining();
  EXPECT_THAT(Output(), HasSubstr("begins with " + Path("other/checkpoints/")));
  MU_ASSERT_OK(second->Kill(SIGINT));
  EXPECT_EQ(ExitOf(second.get()), 130);
  // One of another job is refused, whatever it would begin with.
  EXPECT_EQ(Run({"train", Job(), "--job_dir=" + Path("run"), "--checkpoint=" + Path("other")}), 2);
  EXPECT_THAT(Output(), HasSubstr("holds the unfinished run of another job"));
}

}  // namespace
}  // namespace mu
