// How long a loss held up the work, and what it cost.
#include "coordinator/core/failure_log.h"

#include <algorithm>

#include "gmock/gmock.h"

namespace mu {
namespace {

using ::testing::DoubleNear;

MemberFailure Worker(uint32_t index, double at) {
  return {{}, pb::ROLE_WORKER, index, "died", at, "killed"};
}
MemberFailure Server(uint32_t index, double at) {
  return {{}, pb::ROLE_PSSERVER, index, "died", at, "killed"};
}

StepOutcome Repeated(uint32_t samples) { return {.samples = samples, .repeated = true}; }
StepOutcome Updates(uint32_t updates, uint32_t inherited) {
  return {.updates = {updates}, .inherited = {inherited}};
}

TEST(FailureLog, AnIdleWorkerHoldsUpNobodyOnceOthersGoOn) {
  FailureLog log;
  log.WorkerLost(Worker(0, 1.0), {});
  EXPECT_LT(log.failures()[0].recovered_seconds, 0);
  log.StepDone(FunctionId(7), {}, {}, 1.5);
  EXPECT_THAT(log.failures()[0].recovered_seconds, DoubleNear(0.5, 1e-9));
  log.StepDone(FunctionId(7), {}, {}, 9);
  EXPECT_THAT(log.failures()[0].recovered_seconds, DoubleNear(0.5, 1e-9));
}

TEST(FailureLog, AnIdleWorkerIsReplacedWhenTheNextOneIsReady) {
  FailureLog log;
  log.WorkerLost(Worker(0, 1.0), {});
  log.WorkerReady(3.0);
  EXPECT_THAT(log.failures()[0].recovered_seconds, DoubleNear(2.0, 1e-9));
}

TEST(FailureLog, ABusyWorkersFunctionsHaveToGoOn) {
  FailureLog log;
  log.WorkerLost(Worker(0, 1.0), {FunctionId(7), FunctionId(8)});
  log.WorkerReady(1.1);
  log.StepDone(FunctionId(9), {}, {}, 1.2);
  EXPECT_LT(log.failures()[0].recovered_seconds, 0) << "nothing of it goes on";
  log.StepDone(FunctionId(8), Repeated(5), {.last = true}, 1.7);
  EXPECT_THAT(log.failures()[0].recovered_seconds, DoubleNear(0.7, 1e-9));
  log.StepDone(FunctionId(8), Repeated(5), {}, 1.8);  // it is over: a repeat for another reason
  EXPECT_EQ(log.failures()[0].steps_repeated, 1u);
  EXPECT_EQ(log.failures()[0].samples_repeated, 5u);
}

// Its results were all there, only the end of the run was missing.
TEST(FailureLog, WhatIsFoundToBeCompleteGoesOn) {
  FailureLog log;
  log.WorkerLost(Worker(0, 1.0), {FunctionId(7)});
  log.FunctionOver(FunctionId(7), /*finished=*/true, 1.1);
  EXPECT_THAT(log.failures()[0].recovered_seconds, DoubleNear(0.1, 1e-9));
}

TEST(FailureLog, WhatIsCancelledNobodyWaitsFor) {
  FailureLog log;
  log.WorkerLost(Worker(0, 1.0), {FunctionId(7), FunctionId(8)});
  log.FunctionOver(FunctionId(7), /*finished=*/false, 1.1);
  log.WorkerReady(1.2);
  EXPECT_LT(log.failures()[0].recovered_seconds, 0) << "the other one is still waited for";
  log.FunctionOver(FunctionId(8), /*finished=*/false, 1.3);
  EXPECT_LT(log.failures()[0].recovered_seconds, 0);
  log.WorkerReady(1.5);
  EXPECT_THAT(log.failures()[0].recovered_seconds, DoubleNear(0.5, 1e-9));
}

TEST(FailureLog, AFunctionThatLosesTwoWorkersIsTheEndOfBothLosses) {
  FailureLog log;
  log.WorkerLost(Worker(0, 1.0), {FunctionId(7)});
  log.WorkerLost(Worker(1, 2.0), {FunctionId(7)});
  log.StepDone(FunctionId(7), Repeated(5), {}, 4.0);
  EXPECT_THAT(log.failures()[0].recovered_seconds, DoubleNear(3.0, 1e-9));
  EXPECT_THAT(log.failures()[1].recovered_seconds, DoubleNear(2.0, 1e-9));
  EXPECT_EQ(log.failures()[0].steps_repeated, 0u);
  EXPECT_EQ(log.failures()[1].steps_repeated, 1u);
}

// The servers go back, and a worker is lost that ran what they went back by.
TEST(FailureLog, WhatTheRestoredStateContainsIsCountedOnce) {
  FailureLog log;
  log.ServerLost(Server(0, 1.0), /*first=*/true);
  log.RolledBack({.functions = 1, .steps = 2, .samples = 10});
  log.WorkerLost(Worker(0, 2.0), {FunctionId(7)});
  StepOutcome step = Repeated(5);
  step.updates = {0, 0};
  step.inherited = {3, 1};
  log.StepDone(FunctionId(7), step, {.updates = true}, 3.0);
  EXPECT_EQ(log.failures()[0].steps_repeated, 2u);
  EXPECT_EQ(log.failures()[1].steps_repeated, 0u) << "it is one of the two";
  step.updates = {0, 2};
  step.inherited = {3, 0};
  log.StepDone(FunctionId(7), step, {.updates = true}, 3.1);
  EXPECT_EQ(log.failures()[1].steps_repeated, 1u) << "the lost worker has run it since";
  step.updates = {0, 0};
  step.inherited = {3, 1};
  log.StepDone(FunctionId(7), step, {.updates = true, .first = true}, 3.2);
  EXPECT_EQ(log.failures()[1].steps_repeated, 2u) << "its result had not come";
  EXPECT_EQ(log.failures()[1].samples_repeated, 10u);
}

TEST(FailureLog, AnEndThatIsSeenLateIsWithTheLoss) {
  FailureLog log;
  for (const int64_t pid : {7, 8, 7}) {
    MemberFailure failure = Worker(0, 1.0);
    failure.message = "the connection broke";
    failure.pid = pid;
    log.WorkerLost(failure, {});
  }
  MemberFailure left = Worker(1, 2.0);
  left.kind = "left";
  left.pid = 9;
  log.WorkerLost(left, {});
  for (const int64_t pid : {7, 9, 10}) log.DaemonEnded(pid, "killed by SIGKILL");
  EXPECT_EQ(log.failures()[0].message, "the connection broke") << "an earlier process of this pid";
  EXPECT_EQ(log.failures()[1].message, "the connection broke");
  EXPECT_EQ(log.failures()[2].message, "the connection broke; killed by SIGKILL");
  EXPECT_EQ(log.failures()[3].message, left.message);
}

TEST(FailureLog, AJobOfMonthsListsTheFirstAndTheLastAndSumsUpAll) {
  FailureLog all(/*first=*/1'000'000, /*last=*/0), some(/*first=*/2, /*last=*/3);
  for (FailureLog* log : {&all, &some}) {
    double now = 0;
    for (uint32_t i = 0; i < 100; ++i) {
      const FunctionId function(i);
      now += 1;
      log->WorkerLost(Worker(i, now), {function});
      log->WorkerLost(Worker(1000 + i, now), {});
      log->ServerLost(Server(0, now), /*first=*/true);
      log->ServerLost(Server(1, now + 0.25), /*first=*/false);
      log->RolledBack({.functions = 1, .steps = 2, .samples = 5});
      log->ServerRestored(0, 0, "initial values");
      if (i % 3 == 0) log->ServersBack(now + 0.5);  // others come back in a later round
      // Its failure may have left the list by now.
      if (i >= 5) log->StepDone(FunctionId(i - 5), Repeated(7), {.last = true}, now + 0.6);
      log->StepDone(function, Updates(3, 0), {.updates = true, .first = true}, now + 0.7);
    }
    log->ServersBack(now + 1);
  }
  const auto total = [](const FailureLog& log) {
    UnlistedFailures sum = log.unlisted();
    for (const MemberFailure& failure : log.failures()) {
      ++sum.failures;
      sum.servers += failure.role == pb::ROLE_PSSERVER ? 1 : 0;
      sum.steps_repeated += failure.steps_repeated;
      sum.samples_repeated += failure.samples_repeated;
      sum.updates_rolled_back += failure.updates_rolled_back;
      RoleFailures& role = failure.role == pb::ROLE_PSSERVER ? sum.of_servers : sum.of_workers;
      ++role.failures;
      role.steps_repeated += failure.steps_repeated;
      role.samples_repeated += failure.samples_repeated;
      role.updates_rolled_back += failure.updates_rolled_back;
      if (failure.recovered_seconds < 0) continue;
      ++role.recovered;
      role.recovery_seconds += failure.recovered_seconds;
      role.longest_recovery_seconds =
          std::max(role.longest_recovery_seconds, failure.recovered_seconds);
    }
    return sum;
  };
  ASSERT_EQ(all.failures().size(), 400u);
  ASSERT_EQ(some.failures().size(), 5u);
  EXPECT_EQ(some.failures()[0].index, 0u);
  EXPECT_EQ(some.failures()[1].index, 1000u);
  EXPECT_EQ(some.failures()[4].at_seconds, 100.25);
  EXPECT_EQ(some.failures()[1].number, 1u);
  EXPECT_EQ(some.failures()[2].number, 397u) << "those between are not listed any more";
  EXPECT_EQ(some.failures()[4].number, 399u);
  const UnlistedFailures expected = total(all), summed = total(some);
  EXPECT_EQ(summed.failures, expected.failures);
  EXPECT_EQ(expected.servers, 200u);
  EXPECT_EQ(summed.servers, expected.servers);
  EXPECT_GT(expected.steps_repeated, 200u);
  EXPECT_EQ(summed.steps_repeated, expected.steps_repeated);
  EXPECT_EQ(summed.samples_repeated, expected.samples_repeated);
  EXPECT_EQ(summed.updates_rolled_back, expected.updates_rolled_back);
  EXPECT_THAT(some.without_progress_seconds(), DoubleNear(all.without_progress_seconds(), 1e-6));
  for (RoleFailures UnlistedFailures::*role :
       {&UnlistedFailures::of_workers, &UnlistedFailures::of_servers}) {
    const RoleFailures &one = summed.*role, &other = expected.*role;
    EXPECT_EQ(one.failures, 200u);
    EXPECT_EQ(other.failures, 200u);
    EXPECT_GT(other.steps_repeated, 90u);
    EXPECT_EQ(one.steps_repeated, other.steps_repeated);
    EXPECT_EQ(one.samples_repeated, other.samples_repeated);
    EXPECT_EQ(one.updates_rolled_back, other.updates_rolled_back);
  }
  EXPECT_EQ(expected.of_servers.recovered, 200u);
  EXPECT_EQ(summed.of_servers.recovered, 200u);
  EXPECT_THAT(summed.of_servers.recovery_seconds,
              DoubleNear(expected.of_servers.recovery_seconds, 1e-6));
  EXPECT_GT(expected.of_servers.longest_recovery_seconds, 2) << "of a round that came later";
  EXPECT_THAT(summed.of_servers.longest_recovery_seconds,
              DoubleNear(expected.of_servers.longest_recovery_seconds, 1e-9));
  // Half of the workers had left the list before work went on.
  EXPECT_EQ(expected.of_workers.recovered, 200u);
  EXPECT_LT(summed.of_workers.recovered, 200u);
}

// One recovery brings all of them back: the cluster stood still once.
TEST(FailureLog, TimeWithoutProgressCountsOnceForServersLostTogether) {
  FailureLog all, some(/*first=*/0, /*last=*/1);
  for (FailureLog* log : {&all, &some}) {
    log->WorkerLost(Worker(0, 0.5), {});
    log->ServerLost(Server(0, 1.0), /*first=*/true);
    log->ServerLost(Server(1, 2.0), /*first=*/false);
    EXPECT_EQ(log->without_progress_seconds(), 0) << "they are not back";
    log->ServersBack(4.0);
    EXPECT_THAT(log->without_progress_seconds(), DoubleNear(3, 1e-9));
    log->ServersBack(6.0);  // nobody was lost
    EXPECT_THAT(log->without_progress_seconds(), DoubleNear(3, 1e-9));
    log->ServerLost(Server(1, 10.0), /*first=*/true);
    log->ServersBack(10.5);
    EXPECT_THAT(log->without_progress_seconds(), DoubleNear(3.5, 1e-9));
  }
  double by_server = some.unlisted().of_servers.recovery_seconds;
  for (const MemberFailure& failure : some.failures()) by_server += failure.recovered_seconds;
  EXPECT_THAT(by_server, DoubleNear(5.5, 1e-9)) << "each server's own time, summed";
}

TEST(FailureLog, WhoLeftIsSummedUpApart) {
  FailureLog log(/*first=*/0, /*last=*/1);
  MemberFailure server = Server(0, 1.0), worker = Worker(0, 3.0);
  server.kind = worker.kind = "left";
  log.ServerLost(server, /*first=*/true);
  log.ServerLost(Server(1, 2.0), /*first=*/false);
  log.WorkerLost(worker, {});
  log.WorkerLost(Worker(1, 4.0), {});
  ASSERT_EQ(log.failures().size(), 1u);
  EXPECT_EQ(log.unlisted().of_servers.recovered, 0u);
  log.ServersBack(5.0);
  const UnlistedFailures unlisted = log.unlisted();
  EXPECT_EQ(unlisted.failures, 1u);
  EXPECT_EQ(unlisted.left, 2u);
  EXPECT_EQ(unlisted.of_servers.failures, 1u);
  EXPECT_EQ(unlisted.of_servers.left, 1u);
  EXPECT_EQ(unlisted.of_servers.recovered, 1u);
  EXPECT_THAT(unlisted.of_servers.recovery_seconds, DoubleNear(7, 1e-9));
  EXPECT_THAT(unlisted.of_servers.longest_recovery_seconds, DoubleNear(4, 1e-9));
  EXPECT_EQ(unlisted.of_workers.failures, 0u);
  EXPECT_EQ(unlisted.of_workers.left, 1u);
  EXPECT_EQ(unlisted.of_workers.recovered, 0u);
}

TEST(FailureLog, WhatServersLostTogetherIsWithTheFirst) {
  FailureLog log;
  log.WorkerLost(Worker(0, 0.5), {});
  for (int i = 0; i < 4; ++i)
    log.StepDone(FunctionId(1), Updates(3, 0), {.updates = true, .first = true}, 0.7);
  log.ServerLost(Server(0, 1.0), /*first=*/true);
  log.ServerLost(Server(1, 2.0), /*first=*/false);
  log.RolledBack({.functions = 1, .steps = 3, .samples = 30});
  log.ServerRestored(0, 5, "initial values");
  EXPECT_THAT(log.ServersBack(3.0),
              ::testing::ElementsAre(::testing::Field(&MemberFailure::index, 0),
                                     ::testing::Field(&MemberFailure::index, 1)));
  EXPECT_EQ(log.failures()[1].steps_repeated, 3u);
  EXPECT_EQ(log.failures()[1].samples_repeated, 30u);
  EXPECT_EQ(log.failures()[1].updates_rolled_back, 7);
  EXPECT_EQ(log.failures()[2].updates_rolled_back, 0);
  EXPECT_THAT(log.failures()[1].message, ::testing::HasSubstr("restored from initial values"));
  EXPECT_THAT(log.failures()[1].recovered_seconds, DoubleNear(2.0, 1e-9));
  EXPECT_THAT(log.failures()[2].recovered_seconds, DoubleNear(1.0, 1e-9));
}

// A coordinator continues from a checkpoint that contains two updates of a step whose result had
// not come; then a server is lost and goes back to that checkpoint before they come. Nobody has
// lost anything of what was acknowledged.
TEST(FailureLog, WhatACheckpointHeldWithoutItsResultWasNotLost) {
  for (const std::vector<uint64_t>& held :
       {std::vector<uint64_t>{12}, std::vector<uint64_t>{5, 7}}) {
    FailureLog log;
    log.Continue(held, {10});
    log.ServerLost(Server(0, 1.0), /*first=*/true);
    log.ServerRestored(0, held[0], "ckpt-1");
    log.StepDone(FunctionId(1), Updates(0, 2), {.updates = true, .first = true}, 2.0);
    EXPECT_EQ(log.failures()[0].updates_rolled_back, 0);
    log.StepDone(FunctionId(2), Updates(4, 0), {.updates = true, .first = true}, 2.0);
    log.ServerLost(Server(0, 3.0), /*first=*/true);
    log.ServerRestored(0, held[0], "ckpt-1");
    EXPECT_EQ(log.failures()[1].updates_rolled_back, 4);
  }
}

TEST(FailureLog, StepsThatABackupRunRepeatsAreNoFailures) {
  FailureLog log;
  log.BackupRun(FunctionId(7));
  log.StepDone(FunctionId(7), Repeated(5), {.updates = true}, 1);
  EXPECT_EQ(log.backup_runs().runs, 1u);
  EXPECT_EQ(log.backup_runs().steps_repeated, 1u) << "the servers had its updates from the first";
  StepOutcome late = Updates(3, 0);
  log.LateStep(late);
  EXPECT_EQ(log.backup_runs().steps_repeated, 1u) << "it is that one";
  late.repeated = true;
  late.samples = 2;
  log.LateStep(late);
  EXPECT_EQ(log.backup_runs().steps_repeated, 2u);
  StepOutcome reads;  // has no updates: both have computed it
  reads.samples = 4;
  log.LateStep(reads);
  EXPECT_EQ(log.backup_runs().steps_repeated, 3u);
  EXPECT_EQ(log.backup_runs().samples_repeated, 11u);
  log.FunctionOver(FunctionId(7), true, 2);
  log.StepDone(FunctionId(7), Repeated(5), {.updates = true}, 3);  // repeated after a restore
  EXPECT_EQ(log.backup_runs().steps_repeated, 3u);
  EXPECT_TRUE(log.failures().empty());
}

}  // namespace
}  // namespace mu
