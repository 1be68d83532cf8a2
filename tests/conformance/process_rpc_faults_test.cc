// Calls between real processes over gRPC that are lost, repeated or late, whoever makes them.
// rpc_faults_test.cc does it method by method in memory.
#include <memory>
#include <string>
#include <vector>

#include "common/client/membership.h"
#include "common/rpc/typed.h"
#include "tests/conformance/checked_job.h"
#include "tests/testing/rpc_faults.h"

namespace mu {
namespace {

using testing::CheckedJob;
using testing::FaultyDaemon;
using testing::OnRequest;
using testing::RpcFaultsFor;
using testing::TestCluster;
using testing::TestClusterOptions;

// Of the pushes that came, with a transport that has no faults.
uint64_t Repeated(Coordinator& c) {
  const std::unique_ptr<Transport> transport = NewGrpcTransport();
  uint64_t repeated = 0;
  for (const Member& server : c.runtime().Servers()) {
    pb::PsStatsRequest request;
    *request.mutable_context() = c.runtime().Context();
    const auto stats =
        Call<pb::PsStatsReply>(*transport->Connect(server.address, pb::ROLE_PSSERVER),
                               "/muster.PsServer/GetStats", request);
    EXPECT_THAT(stats, testing::IsOk());
    if (stats.ok()) repeated += stats->repeated_pushes();
  }
  return repeated;
}

struct Case {
  const char* name;
  Fault fault;
  bool repeats;  // servers see pushes a second time
};

class RpcFaultsBetweenProcesses : public ::testing::TestWithParam<Case> {};

TEST_P(RpcFaultsBetweenProcesses, NothingIsLostOrDoneTwice) {
  constexpr double kProbability = 0.03;
  const std::vector<FaultRule> rules = {{.fault = GetParam().fault, .probability = kProbability}};
  const uint64_t seed = RandomIdentity() >> 16;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  const auto faults = std::make_shared<FaultPlan>(seed);
  // The coordinator makes some fifty calls, few enough to have no fault in any of them: these are
  // sure.
  faults->Add({.method = "/muster.PsServer/Save", .fault = GetParam().fault, .times = 1});
  faults->Add({.method = "/muster.Worker/Feed/Run", .fault = GetParam().fault, .times = 3});
  faults->Add({.method = "/muster.Worker/Feed/Result", .fault = GetParam().fault, .times = 3});
  faults->Add(rules[0]);
  TestClusterOptions options;
  options.workers = 2;
  options.ps = 2;
  options.coordinator_transport = [&] { return NewFaultyTransport(NewGrpcTransport(), faults); };
  uint64_t daemons = 0;
  options.adjust = [&](const std::string& role, int, SubprocessOptions* daemon) {
    daemon->path = FaultyDaemon(role);
    daemon->environment.push_back(RpcFaultsFor(seed + ++daemons, rules));
  };
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(options));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 8000}));
  job.ScheduleAll(20);
  job.WaitForSteps(400);
  MU_ASSERT_OK(checkpointer.TakeNow());
  job.WaitForSteps(c.Stats().steps + 200);
  cluster->KillServer(0);
  MU_ASSERT_OK(cluster->StartServer(0));
  job.JoinAndCheck();
  EXPECT_GT(faults->hits(), 0) << "in calls of the coordinator";
  for (int worker = 0; worker < 2; ++worker) {
    EXPECT_TRUE(cluster->TerminateWorker(worker).ok());
    EXPECT_THAT(cluster->LogOf("worker", worker),
                ::testing::ContainsRegex("faults in [1-9][0-9]* calls"));
  }
  if (GetParam().repeats) {
    EXPECT_GT(Repeated(c), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, RpcFaultsBetweenProcesses,
                         ::testing::Values(Case{"LostRequest", Fault::kLoseRequest, false},
                                           Case{"LostReply", Fault::kLoseReply, true},
                                           Case{"DuplicatedRequest", Fault::kDuplicate, true},
                                           Case{"LateCopy", Fault::kLateCopy, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mu
