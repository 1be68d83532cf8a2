// One cluster, one job; and a cluster whose coordinator is another one.
#include "common/rpc/typed.h"
#include "coordinator/launch/launch.h"
#include "tests/conformance/conformance.h"

namespace mu {
namespace {

using testing::BinaryDirectory;
using ::testing::HasSubstr;
using testing::kForever;
using testing::StartCounting;
using testing::StatusIs;
using testing::WaitWhile;

TEST(Conformance, TwoJobsOneCluster) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  t.c().Schedule(t.count, {.steps = 1});  // the daemons know by then to whom they belong
  MU_ASSERT_OK(t.c().Join());
  ClusterOptions second;
  second.listen = t.c().address();
  EXPECT_THAT(Connect(second), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("in use")));

  // A coordinator that was given the daemons' addresses in another way.
  const std::unique_ptr<Transport> transport = NewGrpcTransport();
  const pb::GetStatusReply status = t.c().runtime().Status();
  for (const auto& member : status.members()) {
    pb::RequestContext context;
    context.set_job(status.job() + 1);
    context.set_epoch(1);
    const auto channel = transport->Connect(member.address(), pb::ROLE_PSSERVER);
    absl::Status refused;
    if (member.role() == pb::ROLE_WORKER) {
      pb::ConfigureWorkerRequest request;
      *request.mutable_context() = context;
      refused =
          Call<pb::ConfigureWorkerReply>(*channel, "/muster.Worker/Configure", request).status();
    } else {
      pb::ConfigurePsRequest request;
      *request.mutable_context() = context;
      refused =
          Call<pb::ConfigurePsReply>(*channel, "/muster.PsServer/Configure", request).status();
    }
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("job")));
    EXPECT_EQ(KindOf(refused), pb::ERROR_OTHER_JOB);
  }
  t.c().Schedule(t.count, {.steps = 5});
  MU_EXPECT_OK(t.c().Join());
  EXPECT_EQ(t.Count(), 6) << "the first job is not disturbed";
}

absl::StatusOr<std::unique_ptr<Coordinator>> CoordinatorOfEpoch(uint64_t epoch,
                                                                const std::string& listen) {
  Coordinator::Options options;
  options.runtime.listen = listen;
  options.runtime.job = JobId(77);
  options.runtime.epoch = CoordinatorEpoch(epoch);
  options.runtime.servers = 1;
  return Coordinator::Create(options, NewGrpcTransport());
}

// The daemons of a cluster outlive their coordinator, and drop what it had installed when the next
// one comes.
TEST(Conformance, OrphanedWorkerJoinsTheNextEpoch) {
  MU_ASSERT_OK_AND_ASSIGN(auto c, CoordinatorOfEpoch(1, "127.0.0.1:0"));
  const std::string address = c->address();
  std::vector<std::unique_ptr<Subprocess>> daemons;
  for (const char* role : {"psserver", "worker"}) {
    SubprocessOptions options;
    options.path = absl::StrCat(BinaryDirectory(), "/", role);
    options.args = {absl::StrCat("--coordinator=", address), "--orphan_timeout=30"};
    options.parent_pipe = true;
    MU_ASSERT_OK_AND_ASSIGN(auto daemon, Subprocess::Start(options));
    daemons.push_back(std::move(daemon));
  }
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    if (c == nullptr) {
      MU_ASSERT_OK_AND_ASSIGN(c, CoordinatorOfEpoch(epoch, address));
    }
    MU_ASSERT_OK(c->WaitForCluster(1));
    MU_ASSERT_OK_AND_ASSIGN(
        const Function twice,
        c->DefineFunction("twice", [](FunctionBuilder& f) { f.Return("x", f.Arg("x") * 2.0f); }));
    MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result,
                            c->Schedule(twice, {.args = {{"x", 21}}}).Fetch());
    MU_ASSERT_OK_AND_ASSIGN(const Tensor x, result.Get(0, "x"));
    EXPECT_EQ(*x.data<float>(), 42);
    c->Schedule(twice, {.steps = kForever, .args = {{"x", 1}}});
    const uint64_t before = c->Stats().steps;
    WaitWhile([&] { return c->Stats().steps == before; });
    c.reset();  // with a function under way
  }
  for (auto& daemon : daemons)
    EXPECT_FALSE(daemon->TryWait().has_value()) << "it waits for a newer epoch";
}

TEST(Conformance, OrphanEndsWhenNobodyComes) {
  MU_ASSERT_OK_AND_ASSIGN(auto c, CoordinatorOfEpoch(1, "127.0.0.1:0"));
  SubprocessOptions options;
  options.path = BinaryDirectory() + "/worker";
  options.args = {absl::StrCat("--coordinator=", c->address()), "--orphan_timeout=0.5"};
  options.parent_pipe = true;
  MU_ASSERT_OK_AND_ASSIGN(const auto worker, Subprocess::Start(options));
  MU_ASSERT_OK(c->runtime().WaitFor(pb::ROLE_WORKER, 1, absl::Seconds(20)));
  c.reset();
  EXPECT_EQ(worker->Wait().code, 4);
}

}  // namespace
}  // namespace mu
