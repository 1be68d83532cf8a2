// Histories with all kinds of faults, and that a seed is a history.
#include <memory>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/sim/expect.h"

namespace mu::sim {
namespace {

TEST(Simulation, ASeedIsOneHistory) {
  const ScenarioLimits& limits = *FindScenario("everything");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Outcome first = RunOne(seed, limits, /*trace=*/true);
    const Outcome again = RunOne(seed, limits, /*trace=*/true);
    EXPECT_EQ(first.trace, again.trace) << "seed " << seed;
    EXPECT_EQ(RunOne(seed, limits, /*trace=*/false).events, first.events)
        << "a trace changes history " << seed;
  }
}

TEST(Simulation, ThreadsShareNothing) {
  const ScenarioLimits& limits = *FindScenario("everything");
  const Summary alone = RunMany(0, 300, 1, limits);
  const Summary together = RunMany(0, 300, 3, limits);
  EXPECT_EQ(alone.events, together.events);
  EXPECT_EQ(alone.virtual_time, together.virtual_time);
}

// The loop of docs/simulation.md runs a million histories of each of these.
TEST(Simulation, EachModeHasAScenario) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto draw = [seed](const char* name) { return DrawScenario(seed, *FindScenario(name)); };
    const Scenario async = draw("async");
    EXPECT_FALSE(async.most_late.has_value());
    EXPECT_FALSE(async.most_ahead.has_value());
    EXPECT_EQ(async.replicas, 0u);
    EXPECT_TRUE(draw("late").most_late.has_value());
    EXPECT_TRUE(draw("ahead").most_ahead.has_value());
    EXPECT_GT(draw("sync").replicas, 0u);
    EXPECT_GT(draw("groups").evaluations, 0u);
  }
}

// Leases have at most six batches, and rounds do not go beyond a lease: 11 batches make rounds of
// 4, 1, 4 and 2 steps, or of 4, 2, 4 and 1; 10 batches make rounds of 4, 2 and 4.
TEST(Simulation, ASmallRoundEndsAnEpoch) {
  const auto seen = [](uint32_t batches) {
    Scenario scenario;
    scenario.batches = batches;
    scenario.steps = 1;
    scenario.replicas = 4;
    const Outcome outcome = std::make_unique<Cluster>(/*seed=*/1, scenario, /*trace=*/false)->Run();
    EXPECT_TRUE(outcome.ok()) << outcome.problem;
    Coverage coverage;
    coverage.Add(outcome.seen);
    return coverage.Histories("small round ends epoch");
  };
  EXPECT_EQ(seen(11), 1u);
  EXPECT_EQ(seen(10), 0u) << "the last round is whole, and the small one is not the last";
}

TEST(Simulation, OneOfTwoPackedContributorsDies) {
  const auto seen = [](uint32_t workers, uint32_t steps) {
    ScenarioLimits limits = *FindScenario("sync_two_packed_and_one_dies");
    limits.workers = workers;
    limits.steps = steps;
    return RunMany(0, 100, 1, limits).coverage.Histories("packed contributor dies");
  };
  EXPECT_GT(seen(2, 3), 0u);
  EXPECT_EQ(seen(2, 1), 0u) << "functions have one step";
  EXPECT_EQ(seen(1, 3), 0u) << "there is one worker";
}

// What a kind of fault leaves in a trace, beside the strike itself: a line of a process whose name
// begins with `who`, and whose text with `what`.
struct Mark {
  Fault fault;
  const char* who;
  const char* what;
  Fault with = Fault::kJoinWorker;  // struck as well, where the first kind alone shows nothing
};
constexpr Mark kMarks[] = {
    {Fault::kKillWorker, "worker", "is killed"},
    {Fault::kKillServer, "server", "is killed"},
    {Fault::kKillCoordinator, "coordinator", "is killed"},
    {Fault::kHangWorker, "worker", "hangs"},
    {Fault::kHangServer, "server", "hangs"},
    {Fault::kHangCoordinator, "coordinator", "hangs"},
    {Fault::kDrainWorker, "worker", "exits"},
    {Fault::kDrainServer, "server", "exits"},
    {Fault::kJoinWorker, "worker 2", "starts"},
    {Fault::kReplaceWorker, "worker 0'", "starts"},
    {Fault::kReplaceServer, "server 0'", "starts"},
    {Fault::kSecondCoordinator, "coordinator 0", "ends: a newer coordinator (epoch"},
    {Fault::kCutWorker, "worker", "lost on a cut to coordinator"},
    {Fault::kCutServer, "server", "lost on a cut to coordinator"},
    {Fault::kCutCoordinator, "coordinator", "lost on a cut to"},
    {Fault::kCutWorkerServer, "worker", "lost on a cut to server"},
    {Fault::kCancel, "coordinator", "cancels what is below function"},
    {Fault::kBadFunction, "coordinator", "< worker 0 answer to Install ERROR_USER"},
    {Fault::kNoData, "coordinator", "< worker 0 run ended ERROR_MACHINE: there is no such file"},
    {Fault::kGarbage, "coordinator", "< worker 0 result ERROR_MACHINE: garbage"},
    {Fault::kDeafServer, "server", "is deaf"},
    {Fault::kDiskFull, "coordinator", "< server 0 answer to Save ERROR_MACHINE: the disk is full"},
    {Fault::kBadFile, "coordinator",
     "< server 0 answer to Restore ERROR_MACHINE: file 0 is damaged", Fault::kKillServer},
    {Fault::kLostFile, "coordinator", "< server 0 answer to Restore ERROR_MACHINE: the file is not",
     Fault::kKillServer},
    {Fault::kResize, "server 2", "starts"},
    {Fault::kForget, "coordinator", "< worker 0 run ended ERROR_NOT_INSTALLED"},
    {Fault::kHangDisk, "coordinator", "server 0 is lost: hangs"},
    {Fault::kNoDisk, "coordinator",
     "< server 0 answer to Restore ERROR_MACHINE: the disk is not there", Fault::kKillServer},
    {Fault::kUserError, "coordinator", "< worker 0 run ended ERROR_USER: run"},
    {Fault::kUserRestore, "coordinator", "the user restores checkpoint"},
    {Fault::kNoManifest, "coordinator", "writes no manifest"},
    {Fault::kBadManifest, "coordinator", "cannot read the manifest", Fault::kKillServer},
    {Fault::kTornFile, "coordinator", "< server 0 answer to Restore ERROR_MACHINE: file 0 is torn",
     Fault::kKillServer},
    {Fault::kShutFolder, "coordinator", "the folder of checkpoints is shut"},
    {Fault::kStranger, "worker", "< the cluster"},
    {Fault::kClose, "coordinator", "< closed"},
    {Fault::kChangeRounds, "coordinator", "changes its rounds"},
    {Fault::kRenamed, "coordinator", "has another checkpoint in the place of", Fault::kKillServer},
};

// In how many of 60 histories of two workers and two servers, struck by these, the mark is.
int Marked(const Mark& mark, std::vector<Fault> kinds) {
  ScenarioLimits limits = *FindScenario("undisturbed");
  limits.checkpoint_every = 20 * kMillisecond;
  limits.least_strikes = limits.most_strikes = 4;
  limits.kinds = std::move(kinds);
  int marked = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const std::string trace = RunOne(seed, limits, /*trace=*/true).trace;
    for (const absl::string_view line : absl::StrSplit(trace, '\n')) {
      constexpr size_t kName = 15, kText = kName + 15;  // Cluster::Write
      if (line.size() < kText || !absl::StartsWith(line.substr(kName), mark.who) ||
          !absl::StartsWith(line.substr(kText), mark.what)) {
        continue;
      }
      ++marked;
      break;
    }
  }
  return marked;
}

TEST(Simulation, FaultsStrike) {
  std::set<Fault> known;
  for (const Mark& mark : kMarks) {
    SCOPED_TRACE(ToString(mark.fault));
    known.insert(mark.fault);
    EXPECT_GT(Marked(mark, {mark.fault, mark.with}), 0) << "nothing comes of it";
    if (mark.fault == mark.with) continue;
    EXPECT_EQ(Marked(mark, {mark.with}), 0) << "the mark is there without the fault";
  }
  EXPECT_EQ(known.size(), static_cast<size_t>(kFaultKinds)) << "each kind has a mark";
}

}  // namespace
}  // namespace mu::sim
