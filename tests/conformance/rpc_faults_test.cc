// Every method of every service loses requests, loses replies and gets requests twice, while a job
// runs that calls all of them. The methods are those of the protos: a new one is tested as soon as
// the job below calls it, and the tests fail until it does.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "common/rpc/feed_kinds.h"
#include "common/rpc/typed.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/memory_cluster.h"
#include "tests/conformance/numbers_file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::Each;
using testing::MemoryCluster;

constexpr int kPartitions = 12;  // spread over all servers
constexpr int64_t kRecords = 400, kBatch = 2;
constexpr uint32_t kEpochs = 2;
constexpr int64_t kSteps = kEpochs * kRecords / kBatch;
constexpr uint32_t kStepsPerFunction = 10;
constexpr int64_t kStepsInRounds = 20;

// Jobs as small as this one need none; see tests/worker/feed_test.cc.
bool IsRare(const std::string& kind) { return kind == "Forget" || kind == "Confirm"; }

std::vector<std::string> AllMethods() {
  std::vector<std::string> methods;
  for (const google::protobuf::FileDescriptor* file :
       {pb::RegisterRequest::descriptor()->file(), pb::RunRequest::descriptor()->file(),
        pb::PushRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      const google::protobuf::ServiceDescriptor& service = *file->service(s);
      for (int m = 0; m < service.method_count(); ++m) {
        methods.push_back(absl::StrCat("/", service.full_name(), "/", service.method(m)->name()));
      }
    }
  }
  // Each kind of message on the stream counts as a method.
  for (const std::string& kind : FeedKinds()) {
    if (!IsRare(kind)) methods.push_back(absl::StrCat("/muster.Worker/Feed/", kind));
  }
  return methods;
}

// Each step adds `one`, which was assigned, to a counter, and the squares of its records to a
// checksum, on every server; and it counts on from what was assigned to `total`.
struct Job {
  Variable one, counters, checksums, total, late, in_rounds;
  EmbeddingTable rows;
  Function step, bad, contribution, read;
};

Tensor All(int64_t value) {
  return Tensor::Of<int64_t>(Shape({kPartitions}), std::vector<int64_t>(kPartitions, value));
}

absl::StatusOr<Job> CreateJob(Coordinator& c, const std::string& file) {
  Job job;
  MU_ASSIGN_OR_RETURN(
      const Dataset data,
      c.CreateDataset(Csv({file}).Id("id", 0, 0).Batch(kBatch).Shuffle(50).Epochs(kEpochs)));
  for (auto [variable, name] :
       {std::pair{&job.one, "one"}, std::pair{&job.counters, "counters"},
        std::pair{&job.checksums, "checksums"}, std::pair{&job.total, "total"},
        std::pair{&job.late, "late"}, std::pair{&job.in_rounds, "in_rounds"}}) {
    MU_ASSIGN_OR_RETURN(*variable, c.CreateVariable({.name = name,
                                                     .shape = Shape({kPartitions}),
                                                     .dtype = kInt64,
                                                     .partitioner = FixedShards{kPartitions}}));
  }
  MU_ASSIGN_OR_RETURN(job.rows, c.CreateEmbeddingTable({.name = "rows", .rows = 100, .dim = 1}));
  const Tensor ones = All(1);
  MU_RETURN_IF_ERROR(c.Assign(job.one, ones));
  MU_ASSIGN_OR_RETURN(job.step, c.DefineFunction("step", [&](FunctionBuilder& f) {
    const Sym id = f.NextBatch(data)["id"];
    AssignAdd(job.counters, Read(job.one));
    AssignAdd(job.total, Read(job.one));
    AssignAdd(job.checksums, ConstantTensor(ones) * ReduceSum(id * id));
  }));
  MU_ASSIGN_OR_RETURN(job.contribution, c.DefineFunction("contribution", [&](FunctionBuilder&) {
    AssignAdd(job.in_rounds, Read(job.one));
  }));
  MU_ASSIGN_OR_RETURN(job.read, c.DefineFunction("read", [&](FunctionBuilder& f) {
    f.Return("in_rounds", Read(job.in_rounds));
  }));
  MU_ASSIGN_OR_RETURN(job.bad, c.DefineFunction("bad", [&](FunctionBuilder& f) {
    f.Return("log", Log(f.Arg("x")));
  }));
  return job;
}

// A method that only reads, as anybody would ask again.
template <typename Reply, typename Request>
void Ask(Channel& channel, const std::string& method, const Request& request) {
  while (!Call<Reply>(channel, method, request).ok()) std::this_thread::yield();
}

void WaitForSteps(Coordinator& c, uint64_t steps) {
  while (c.Stats().steps < steps) std::this_thread::yield();
}

// Calls every method, and checks what must come out however they fare.
void RunJob(std::shared_ptr<FaultPlan> faults) {
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster, MemoryCluster::Start(2, 2, faults));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(
      &c, {.directory = cluster->directory() + "/checkpoints", .every = absl::InfiniteDuration()});
  testing::WriteFile(cluster->directory() + "/data.csv", testing::Numbers(0, kRecords));
  MU_ASSERT_OK_AND_ASSIGN(const Job job, CreateJob(c, cluster->directory() + "/data.csv"));

  c.Schedule(job.bad, {.args = {{"x", -1.0}}});  // its error has to be fenced off
  EXPECT_THAT(c.Join(), testing::HasCode(absl::StatusCode::kInvalidArgument));

  MU_ASSERT_OK(c.Assign(job.total, All(1000)));
  for (int64_t i = 0; i < kSteps / kStepsPerFunction; ++i)
    c.Schedule(job.step, {.steps = kStepsPerFunction});
  WaitForSteps(c, kSteps / 8);
  MU_ASSERT_OK(checkpointer.TakeNow());
  MU_ASSERT_OK(c.Assign(job.late, All(7)));
  MU_ASSERT_OK(c.AssignRows(job.rows, {1, 70}, Tensor::Of<float>({2, 1}, {5, 6})));
  WaitForSteps(c, kSteps / 4);
  MU_ASSERT_OK(cluster->DrainWorker(1));
  MU_ASSERT_OK(cluster->StartWorker(1));
  WaitForSteps(c, kSteps / 2);
  // The place is taken from the one before: all go back to the checkpoint
  MU_ASSERT_OK(cluster->StartServer(0));
  MU_ASSERT_OK(c.Join());

  EXPECT_EQ(c.Stats().steps, static_cast<uint64_t>(kSteps)) << "each result is delivered once";
  int64_t squares = 0;
  for (int64_t i = 0; i < kRecords; ++i) squares += i * i;
  MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c.Read(job.counters));
  EXPECT_THAT(counted.flat<int64_t>(), Each(kSteps));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor summed, c.Read(job.checksums));
  EXPECT_THAT(summed.flat<int64_t>(), Each(squares * static_cast<int64_t>(kEpochs)));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor total, c.Read(job.total));
  EXPECT_THAT(total.flat<int64_t>(), Each(1000 + kSteps))
      << "no copy of an assignment undoes a step";
  MU_ASSERT_OK_AND_ASSIGN(const Tensor late, c.Read(job.late));
  EXPECT_THAT(late.flat<int64_t>(), Each(7))
      << "made after the checkpoint, and made again after the restore";

  std::map<int64_t, float> rows;
  MU_ASSERT_OK(c.ReadTable(job.rows, [&](const Coordinator::TableRows& piece) {
    for (size_t i = 0; i < piece.ids.size(); ++i)
      rows[piece.ids[i]] = piece.values.flat<float>()[i];
    return absl::OkStatus();
  }));
  EXPECT_EQ(rows, (std::map<int64_t, float>{{1, 5.0f}, {70, 6.0f}}));

  // Now and then a worker that is drained has no run to hand back: the next one is on its way.
  int64_t contributed = 0;
  for (int i = 0; i < 100 && !faults->called().contains("/muster.Worker/Feed/HandBack"); ++i) {
    for (int f = 0; f < 8; ++f) c.Schedule(job.contribution, {.steps = kStepsPerFunction});
    contributed += 8 * kStepsPerFunction;
    MU_ASSERT_OK(cluster->DrainWorker(1));
    MU_ASSERT_OK(cluster->StartWorker(1));
    MU_ASSERT_OK(c.Join());
  }
  MU_ASSERT_OK(c.SynchronousRounds({.replicas = 2}));
  for (int64_t i = 0; i < kStepsInRounds; ++i) c.Schedule(job.contribution);
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const Tensor in_rounds, c.Read(job.in_rounds));
  EXPECT_THAT(in_rounds.flat<int64_t>(), Each(contributed + kStepsInRounds))
      << "each round is applied once";

  {
    // Who is at it is told that nobody wants it any more.
    MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup group, c.CreateGroup());
    const uint64_t before = c.Stats().steps;
    c.Schedule(job.read, {.steps = 1'000'000, .group = group});
    WaitForSteps(c, before + 1);
    c.Cancel(group);
    MU_EXPECT_OK(c.Join(group));
    while (!faults->called().contains("/muster.Worker/Feed/Unwanted")) std::this_thread::yield();
  }

  MU_ASSERT_OK_AND_ASSIGN(const std::string saved, checkpointer.TakeNow());
  for (int64_t i = 0; i < kStepsInRounds; ++i) c.Schedule(job.contribution);
  {
    MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup group, c.CreateGroup({.checkpoint = saved}));
    const RemoteValue read = c.Schedule(job.read, {.group = group});
    MU_ASSERT_OK(c.Join(group));
    MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, read.Fetch());
    MU_ASSERT_OK_AND_ASSIGN(const Tensor as_saved, result.Get(0, "in_rounds"));
    EXPECT_THAT(as_saved.flat<int64_t>(), Each(contributed + kStepsInRounds))
        << "as the checkpoint has it, whatever training does";
  }
  MU_ASSERT_OK(c.Join());
  while (!faults->called().contains("/muster.PsServer/DropView")) std::this_thread::yield();

  Ask<pb::GetStatusReply>(*cluster->ChannelTo(c.address()), "/muster.Coordinator/GetStatus",
                          pb::GetStatusRequest());
  Ask<pb::TelemetryReply>(*cluster->ChannelTo(cluster->WorkerAddress(0)),
                          "/muster.Worker/GetTelemetry", pb::TelemetryRequest());
  pb::PsStatsRequest stats;
  *stats.mutable_context() = c.runtime().Context();
  const auto server = cluster->ChannelTo(cluster->ServerAddress(0));
  Ask<pb::PsStatsReply>(*server, "/muster.PsServer/GetStats", stats);
  Ask<pb::TelemetryReply>(*server, "/muster.PsServer/GetTelemetry", pb::TelemetryRequest());
}

// Runs the job with these faults, decided by a new seed each time.
void RunWith(const std::vector<FaultRule>& rules) {
  const uint64_t seed = RandomIdentity();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  const auto faults = std::make_shared<FaultPlan>(seed);
  for (const FaultRule& rule : rules) faults->Add(rule);
  RunJob(faults);
  EXPECT_GT(faults->hits(), 0) << "the job of this test does not call " << rules[0].method
                               << ": make it do so";
}

class RpcConformance : public ::testing::TestWithParam<std::string> {};

// The first two calls of the method for sure, later ones now and then.
TEST_P(RpcConformance, LostRequest) {
  RunWith({{.method = GetParam(), .fault = Fault::kLoseRequest, .times = 2},
           {.method = GetParam(), .fault = Fault::kLoseRequest, .probability = 0.05}});
}
TEST_P(RpcConformance, LostReply) {
  RunWith({{.method = GetParam(), .fault = Fault::kLoseReply, .times = 2},
           {.method = GetParam(), .fault = Fault::kLoseReply, .probability = 0.05}});
}
TEST_P(RpcConformance, DuplicatedRequest) {
  RunWith({{.method = GetParam(), .fault = Fault::kDuplicate}});
}

TEST_P(RpcConformance, LateCopy) {
  RunWith({{.method = GetParam(),
            .fault = Fault::kLateCopy,
            .times = 2,
            .delay = absl::Milliseconds(100)},
           {.method = GetParam(),
            .fault = Fault::kLateCopy,
            .probability = 0.2,
            .delay = absl::Milliseconds(5)}});
}

INSTANTIATE_TEST_SUITE_P(
    EveryMethod, RpcConformance, ::testing::ValuesIn(AllMethods()), [](const auto& info) {
      return absl::StrReplaceAll(info.param.substr(1), {{"muster.", ""}, {"/", ""}});
    });

TEST(Conformance, EveryMethodIsTestedWithFaults) {
  const auto faults = std::make_shared<FaultPlan>(1);
  RunJob(faults);
  std::vector<std::string> methods = AllMethods();
  std::sort(methods.begin(), methods.end());
  std::vector<std::string> called;
  for (const std::string& method : faults->called()) {
    if (!IsRare(method.substr(method.rfind('/') + 1))) called.push_back(method);
  }
  EXPECT_THAT(called, ::testing::ElementsAreArray(methods))
      << "a method that is called has to be in the protos, and the job of this test has to call "
         "each of those";
}

TEST(Conformance, AnythingIsLostOrRepeatedOrLate) {
  RunWith({{.fault = Fault::kLoseRequest, .probability = 0.01},
           {.fault = Fault::kLoseReply, .probability = 0.01},
           {.fault = Fault::kDuplicate, .probability = 0.05},
           {.fault = Fault::kDelay, .probability = 0.02, .delay = absl::Milliseconds(5)}});
}

}  // namespace
}  // namespace mu
