// Flags of the daemons whose effect is seen only behind all processes.
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/typed.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

using testing::InFlight;
using testing::Numbers;
using testing::OnRequest;
using testing::StartCounting;
using testing::StatusIs;
using testing::TestCluster;
using testing::TestClusterOptions;
using testing::WaitWhile;

int ThreadsOf(pid_t pid) {
  int threads = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"))) {
    threads += thread.exists() ? 1 : 0;
  }
  return threads;
}

int ThreadsOfAWorker(const std::string& flag) {
  const auto t = StartCounting({.worker_flags = {flag}});
  EXPECT_THAT(t, testing::IsOk());
  return t.ok() ? ThreadsOf(t->cluster->process("worker", 0).pid()) : -1;
}

// What the transport has at any moment differs by a few.
TEST(DaemonOptions, AWorkerReadsAheadWithAsManyThreadsAsItIsTold) {
  const int one = ThreadsOfAWorker("--threads=1"), many = ThreadsOfAWorker("--threads=101");
  EXPECT_GT(many, one + 80);
  EXPECT_LT(many, one + 120);
}

// Adds up the numbers of a packed file.
absl::Status ReadPacked(const std::string& flag) {
  MU_ASSIGN_OR_RETURN(auto t, StartCounting({.worker_flags = {flag}}));
  const std::string file = t.cluster->directory() + "/numbers.csv.gz";
  testing::WriteFile(file, Numbers(0, 4000));
  MU_ASSIGN_OR_RETURN(const Dataset data,
                      t.c().CreateDataset(Csv({file}).Id("id", 0, 0).Batch(40).Epochs(1)));
  MU_ASSIGN_OR_RETURN(const Function add, t.c().DefineFunction("add", [&](FunctionBuilder& f) {
    AssignAdd(t.counter, ConstantTensor(t.All(1)) * ReduceSum(f.NextBatch(data)["id"]));
  }));
  t.c().Schedule(add, {.steps = 100});
  MU_RETURN_IF_ERROR(t.c().Join());
  EXPECT_EQ(t.Count(), 3999 * 4000 / 2);
  return absl::OkStatus();
}

TEST(DaemonOptions, AWorkerKeepsNoMoreUnpackedBytesThanItIsTold) {
  MU_EXPECT_OK(ReadPacked("--cache_bytes=1000000"));
  EXPECT_THAT(ReadPacked("--cache_bytes=1000"), StatusIs(absl::StatusCode::kResourceExhausted,
                                                         ::testing::HasSubstr("numbers.csv.gz")));
}

// A step that needs too much: the error names the op and the flag, the daemons live.
TEST(DaemonOptions, AWorkersTensorsTakeNoMoreMemoryThanItIsTold) {
  TestClusterOptions options{.workers = 1, .ps = 1};
  options.adjust = [&](const std::string& role, int, SubprocessOptions* daemon) {
    if (role == "worker") daemon->args.push_back("--memory_limit=1");
  };
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster, TestCluster::Start(options));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const Variable column,
                          c.CreateVariable({.name = "column", .shape = Shape({1024, 1})}));
  MU_ASSERT_OK_AND_ASSIGN(const Function small, c.DefineFunction("small", [&](FunctionBuilder& f) {
    f.Return("sum", ReduceSum(MatMul(column, column, {.transpose_a = true})));
  }));
  MU_ASSERT_OK_AND_ASSIGN(const Function large, c.DefineFunction("large", [&](FunctionBuilder& f) {
    f.Return("sum", ReduceSum(MatMul(column, column, {.transpose_b = true})));  // 4 MB
  }));
  c.Schedule(large);
  EXPECT_THAT(c.Join(), StatusIs(absl::StatusCode::kResourceExhausted,
                                 ::testing::AllOf(::testing::HasSubstr("matmul"),
                                                  ::testing::HasSubstr("[1024, 1024]"),
                                                  ::testing::HasSubstr("--memory_limit"))));
  c.Schedule(small);
  MU_EXPECT_OK(c.Join());
  EXPECT_EQ(c.Stats().failures.size(), 0u);
}

// A table that grows: the error names the server and what to do, the daemons live.
TEST(DaemonOptions, AServerHoldsNoMoreRowsThanItIsTold) {
  TestClusterOptions options{.workers = 2, .ps = 2};
  options.adjust = [&](const std::string& role, int, SubprocessOptions* daemon) {
    if (role == "psserver") daemon->args.push_back("--memory_limit=1");
  };
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster, TestCluster::Start(options));
  Coordinator& c = cluster->coordinator();
  const std::string file = cluster->directory() + "/numbers.csv";
  testing::WriteFile(file, Numbers(0, 100'000));
  MU_ASSERT_OK_AND_ASSIGN(const Dataset data,
                          c.CreateDataset(Csv({file}).Id("id", 0, 0).Batch(100)));
  MU_ASSERT_OK_AND_ASSIGN(
      const EmbeddingTable table,
      c.CreateEmbeddingTable(
          {.name = "items", .rows = 100'000, .dim = 16, .optimizer = Sgd{.learning_rate = 0.1f}}));
  MU_ASSERT_OK_AND_ASSIGN(const Function train, c.DefineFunction("train", [&](FunctionBuilder& f) {
    const Sym rows = EmbeddingLookup(table, f.NextBatch(data)["id"]);
    f.Minimize(ReduceMean(rows * rows));
  }));
  c.Schedule(train, {.steps = 100});  // 10,000 rows of 64 bytes
  MU_EXPECT_OK(c.Join());
  c.Schedule(train, {.steps = 900});
  EXPECT_THAT(c.Join(), StatusIs(absl::StatusCode::kResourceExhausted,
                                 ::testing::AllOf(::testing::HasSubstr("parameter server "),
                                                  ::testing::HasSubstr("--memory_limit"))));
  MU_EXPECT_OK(c.ReadRows(table, {1, 2, 3}).status());
  EXPECT_EQ(c.Stats().failures.size(), 0u);
}

// No other server in its place would have more room, so nothing is tried again.
TEST(DaemonOptions, AServerMakesNoLargerVariablesThanItIsTold) {
  TestClusterOptions options{.workers = 1, .ps = 1};
  options.adjust = [&](const std::string& role, int, SubprocessOptions* daemon) {
    if (role == "psserver") daemon->args.push_back("--memory_limit=1");
  };
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster, TestCluster::Start(options));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const Variable large,
                          c.CreateVariable({.name = "large", .shape = Shape({1'000'000})}));
  EXPECT_THAT(c.Read(large).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       ::testing::AllOf(::testing::HasSubstr("parameter server 0"),
                                        ::testing::HasSubstr("--memory_limit"))));
  EXPECT_EQ(c.Stats().failures.size(), 0u) << "the server lives";
}

// Trains while checkpoints are written, `checkpoints` of them or until a push has waited for one,
// and returns how many have.
absl::StatusOr<uint64_t> PushesThatWaited(const std::string& flag, int checkpoints) {
  TestClusterOptions options;
  options.adjust = [&](const std::string& role, int, SubprocessOptions* daemon) {
    if (role == "psserver") daemon->args.push_back(flag);
  };
  MU_ASSIGN_OR_RETURN(auto cluster, TestCluster::Start(options));
  Coordinator& c = cluster->coordinator();
  // Written first, so that what is changed beside it has to be copied meanwhile.
  MU_RETURN_IF_ERROR(c.CreateVariable({.name = "large", .shape = Shape({10'000'000})}).status());
  MU_ASSIGN_OR_RETURN(const Variable counter,
                      c.CreateVariable({.name = "counter", .dtype = kInt64}));
  MU_ASSIGN_OR_RETURN(const Function count,
                      c.DefineFunction("count", [&](FunctionBuilder&) { AssignAdd(counter, 1); }));
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  uint64_t waited = 0;
  int64_t scheduled = 0;
  for (int i = 0; i < checkpoints && waited == 0; ++i) {
    c.Schedule(count, {.steps = 200});
    scheduled += 200;
    const uint64_t before = c.Stats().functions;
    WaitWhile([&] { return InFlight(c, 0) == 0 && c.Stats().functions == before; });
    MU_RETURN_IF_ERROR(checkpointer.TakeNow().status());
    MU_RETURN_IF_ERROR(c.Join());
    MU_ASSIGN_OR_RETURN(
        const pb::TelemetryReply telemetry,
        Call<pb::TelemetryReply>(*c.runtime().ChannelTo(c.runtime().Servers()[0].address),
                                 "/muster.PsServer/GetTelemetry", pb::TelemetryRequest()));
    for (const auto& timer : telemetry.timers()) {
      if (timer.name() == "ps.push_wait") waited += timer.count();
    }
  }
  MU_ASSIGN_OR_RETURN(const Tensor counted, c.Read(counter));
  EXPECT_EQ(*counted.data<int64_t>(), scheduled) << "a push that waited is applied, once";
  return waited;
}

TEST(DaemonOptions, AServerKeepsNoMoreCopiesWhileItSavesThanItIsTold) {
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t little, PushesThatWaited("--save_memory=0.00001", 1000));
  EXPECT_GT(little, 0u);
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t much, PushesThatWaited("--save_memory=100", 5));
  EXPECT_EQ(much, 0u);
}

}  // namespace
}  // namespace mu
