// The client and the servers together, over the transport in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

#include "common/base/hash.h"
#include "tests/psserver/cluster.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::PsCluster;
using ::mu::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RetryPolicy Impatient() {
  RetryPolicy policy;
  policy.call_timeout = absl::Milliseconds(200);
  policy.total_timeout = absl::Milliseconds(300);
  policy.first_backoff = absl::Milliseconds(1);
  policy.longest_backoff = absl::Milliseconds(5);
  return policy;
}

// Everything that a run of random steps reads, and the state at its end.
struct Trace {
  std::vector<float> read;
  std::map<std::string, std::vector<char>> variables;
  friend bool operator==(const Trace&, const Trace&) = default;
};

Trace RunSteps(PsCluster* cluster, uint64_t seed, int steps) {
  SplitMix random(seed);
  Trace trace;
  for (int step = 0; step < steps; ++step) {
    PsSession session = cluster->Session(/*function=*/1 + step / 4);
    session.BeginStep(step % 4);
    std::vector<std::vector<int64_t>> ids(2);
    for (int t = 0; t < 2; ++t) {
      std::vector<bool> seen(500);
      for (int i = 0; i < 60; ++i) {
        const int64_t id = static_cast<int64_t>(random.Below(500));
        if (!seen[id]) ids[t].push_back(id);
        seen[id] = true;
      }
    }
    std::vector<float> weights(30), kernel(300 * 700), items(ids[0].size() * 16),
        users(ids[1].size() * 4);
    float bias = 0;
    const VariableRead reads[] = {{0, weights.data()}, {5, kernel.data()}, {1, &bias}};
    const RowsRead rows[] = {{100, ids[0], items.data()}, {101, ids[1], users.data()}};
    EXPECT_THAT(session.Pull(reads, rows), testing::IsOk());
    for (const auto* part : {&weights, &items, &users}) {
      trace.read.insert(trace.read.end(), part->begin(), part->end());
    }
    trace.read.push_back(bias);
    trace.read.push_back(kernel[123456]);
    const auto gradient = [](std::vector<float> values) {
      for (float& v : values) v = v * 0.5f + 0.01f;
      return values;
    };
    const auto g_weights = gradient(weights), g_kernel = gradient(kernel),
               g_items = gradient(items), g_users = gradient(users);
    const float g_bias = 0.25f, average[3] = {1, 2, 3};
    const int64_t one = 1;
    const VariableWrite writes[] = {{0, VariableWrite::kGradient, g_weights.data()},
                                    {5, VariableWrite::kGradient, g_kernel.data()},
                                    {1, VariableWrite::kGradient, &g_bias},
                                    {2, VariableWrite::kAssignAdd, &one},
                                    {4, VariableWrite::kAssignAdd, average}};
    const RowsWrite row_writes[] = {{100, ids[0], g_items.data()}, {101, ids[1], g_users.data()}};
    EXPECT_THAT(session.Push(writes, row_writes), testing::IsOk());
    EXPECT_FALSE(session.push_repeated());
  }
  for (const char* name : {"weights", "bias", "steps", "seen", "average", "dense/kernel"}) {
    auto value = cluster->admin().ReadVariable(cluster->context(), name);
    EXPECT_THAT(value, testing::IsOk());
    const char* bytes = static_cast<const char*>(value->raw());
    trace.variables[name].assign(bytes, bytes + value->bytes());
  }
  return trace;
}

TEST(PsClientTest, SameBitsForAnyNumberOfServers) {
  PsCluster one(1);
  MU_ASSERT_OK(one.Configure());
  const Trace expected = RunSteps(&one, 5, 12);
  EXPECT_EQ(*reinterpret_cast<const int64_t*>(expected.variables.at("steps").data()), 12);
  for (uint32_t servers : {2u, 3u, 5u}) {
    PsCluster cluster(servers);
    MU_ASSERT_OK(cluster.Configure());
    EXPECT_TRUE(RunSteps(&cluster, 5, 12) == expected) << servers << " servers";
  }
}

TEST(PsClientTest, AFunctionThatNeedsOneServerCallsOne) {
  PsCluster cluster(3);
  MU_ASSERT_OK(cluster.Configure());
  PsSession session = cluster.Session();
  session.BeginStep(0);
  float bias = 9;
  const VariableRead read{1, &bias};
  MU_ASSERT_OK(session.Pull({&read, 1}, {}));
  EXPECT_EQ(bias, 0);
  MU_ASSERT_OK(session.Pull({}, {}));
  const std::vector<int64_t> none;
  const RowsRead no_rows{100, none, nullptr};
  MU_ASSERT_OK(session.Pull({}, {&no_rows, 1}));
  const RowsWrite no_updates{100, none, nullptr};
  MU_ASSERT_OK(session.Push({}, {&no_updates, 1}));
  EXPECT_FALSE(session.push_repeated());
  MU_ASSERT_OK_AND_ASSIGN(const auto stats, cluster.admin().Stats(cluster.context()));
  EXPECT_EQ(stats[0].pulls() + stats[1].pulls() + stats[2].pulls(), 1u);
}

TEST(PsClientTest, IdsOutsideTheTableAreTheUsersFault) {
  PsCluster cluster(2);
  MU_ASSERT_OK(cluster.Configure());
  PsSession session = cluster.Session();
  std::vector<float> out(32);
  for (const int64_t bad : {int64_t{1000}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    const std::vector<int64_t> ids = {5, bad};
    const RowsRead rows{100, ids, out.data()};
    const absl::Status status = session.Pull({}, {&rows, 1});
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("table 'items'")));
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(bad)));
    EXPECT_EQ(KindOf(status), pb::ERROR_USER);
    const RowsWrite writes{100, ids, out.data()};
    EXPECT_THAT(session.Push({}, {&writes, 1}), HasCode(absl::StatusCode::kOutOfRange));
  }
}

TEST(PsClientTest, APushIsAppliedOnceHoweverOftenItComes) {
  PsCluster cluster(2);
  MU_ASSERT_OK(cluster.Configure());
  const int64_t one = 1;
  const VariableWrite write{2, VariableWrite::kAssignAdd, &one};
  for (int repeat = 0; repeat < 3; ++repeat) {
    PsSession session = cluster.Session(/*function=*/9);
    session.BeginStep(4);
    MU_ASSERT_OK(session.Push({&write, 1}, {}));
    EXPECT_EQ(session.push_repeated(), repeat > 0);
  }
  MU_ASSERT_OK_AND_ASSIGN(const Tensor steps,
                          cluster.admin().ReadVariable(cluster.context(), "steps"));
  EXPECT_EQ(*steps.data<int64_t>(), 1);
}

TEST(PsClientTest, ConcurrentWorkersAreCountedExactly) {
  PsCluster cluster(3);
  MU_ASSERT_OK(cluster.Configure());
  constexpr int kWorkers = 4, kSteps = 60;
  std::vector<std::thread> workers;
  std::atomic<int> failed{0};
  for (int w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&, w] {
      PsSession session = cluster.Session(/*function=*/1 + w);
      std::vector<int64_t> ids(200);
      std::iota(ids.begin(), ids.end(), 0);
      const std::vector<float> gradients(ids.size() * 4, -2.0f);
      const int64_t one = 1;
      const VariableWrite write{2, VariableWrite::kAssignAdd, &one};
      const RowsWrite rows{101, ids, gradients.data()};
      for (int step = 0; step < kSteps; ++step) {
        session.BeginStep(step);
        failed += !session.Push({&write, 1}, {&rows, 1}).ok();
        if (step % 3 == 0) failed += !session.Push({&write, 1}, {&rows, 1}).ok();  // a repeat
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(failed, 0);
  MU_ASSERT_OK_AND_ASSIGN(const Tensor steps,
                          cluster.admin().ReadVariable(cluster.context(), "steps"));
  EXPECT_EQ(*steps.data<int64_t>(), kWorkers * kSteps);
  std::vector<int64_t> ids = {0, 199};
  std::vector<float> values(8);
  PsSession session = cluster.Session(99, /*read_only=*/true);
  const RowsRead read{101, ids, values.data()};
  MU_ASSERT_OK(session.Pull({}, {&read, 1}));
  // Rate 0.5 times gradient -2
  EXPECT_THAT(values, ::testing::Each(static_cast<float>(kWorkers * kSteps)));
}

TEST(PsClientTest, AServerOutOfReachIsNamedAfterTheTimeLimit) {
  PsCluster cluster(2, testing::SmallModel(2), Impatient());
  MU_ASSERT_OK(cluster.Configure());
  cluster.listening(1).reset();
  std::vector<int64_t> ids(128);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> out(ids.size() * 16);
  const RowsRead rows{100, ids, out.data()};
  PsSession session = cluster.Session();
  const absl::Status status = session.Pull({}, {&rows, 1});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("parameter server 1")));
  const auto detail = DetailOf(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->kind(), pb::ERROR_MACHINE);
  EXPECT_EQ(detail->role(), pb::ROLE_PSSERVER);
  EXPECT_EQ(detail->index(), 1u);
}

TEST(PsClientTest, AServerThatComesLateIsWaitedFor) {
  PsCluster cluster(2);
  PsSession session = cluster.Session();
  float bias = 3;
  const VariableRead read{1, &bias};
  absl::Status status;
  std::thread worker([&] {
    status = session.Pull({&read, 1}, {});
  });  // UNAVAILABLE until configured
  MU_EXPECT_OK(cluster.Configure());
  worker.join();
  MU_EXPECT_OK(status);
  EXPECT_EQ(bias, 0);
}

// The transport's word for it would look like that of a broken machine.
TEST(PsClientTest, APushThatIsTooLargeForAMessageIsTheUsersFault) {
  PsCluster cluster(1);
  MU_ASSERT_OK(cluster.Configure());
  PsClient client(
      [&](const std::string& address) {
        return cluster.transport().Connect(address, pb::ROLE_PSSERVER);
      },
      {}, /*most_request_bytes=*/300 * 700 * sizeof(float));
  client.SetRouting(cluster.client().view()->routing);
  PsSession session(&client, {.context = cluster.context(), .function = 1});
  const std::vector<float> gradient(300 * 700, 1.0f);
  const float one = 1;
  const VariableWrite kernel{5, VariableWrite::kGradient, gradient.data()};
  const VariableWrite bias{1, VariableWrite::kGradient, &one};
  const absl::Status status = session.Push({&kernel, 1}, {});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("smaller batches")));
  EXPECT_EQ(KindOf(status), pb::ERROR_USER);
  MU_ASSERT_OK_AND_ASSIGN(const auto stats, cluster.admin().Stats(cluster.context()));
  EXPECT_EQ(stats[0].pushes(), 0u);
  MU_EXPECT_OK(session.Push({&bias, 1}, {}));
}

TEST(PsClientTest, CancelEndsAPullThatWaits) {
  PsCluster cluster(1);  // not configured: pulls are tried again for a minute
  PsSession session = cluster.Session();
  float bias;
  const VariableRead read{1, &bias};
  absl::Status status;
  std::thread worker([&] { status = session.Pull({&read, 1}, {}); });
  session.Cancel();
  worker.join();
  EXPECT_THAT(status, HasCode(absl::StatusCode::kCancelled));
  EXPECT_THAT(session.Pull({&read, 1}, {}), HasCode(absl::StatusCode::kCancelled))
      << "until the next function";
  MU_ASSERT_OK(cluster.Configure());
  session.BeginFunction({.context = cluster.context(), .function = 2});
  MU_EXPECT_OK(session.Pull({&read, 1}, {}));
}

TEST(PsClientTest, ReadOnlySessionsPushNothing) {
  PsCluster cluster(1);
  MU_ASSERT_OK(cluster.Configure());
  PsSession session = cluster.Session(1, /*read_only=*/true);
  const int64_t one = 1;
  const VariableWrite write{2, VariableWrite::kAssignAdd, &one};
  EXPECT_THAT(session.Push({&write, 1}, {}), HasCode(absl::StatusCode::kFailedPrecondition));
}

TEST(PsClientTest, NewerRoutingReplacesOlder) {
  PsCluster cluster(1);
  MU_ASSERT_OK(cluster.Configure());
  pb::RoutingProto more = cluster.client().view()->routing->proto();
  pb::VariableProto* late = more.add_variables();
  late->set_id(50);
  late->set_name("late");
  late->set_dtype(pb::FLOAT32);
  MU_ASSERT_OK(PlaceAll(&more));
  MU_ASSERT_OK(cluster.client().SetRouting(more)) << "same version: ignored";
  EXPECT_EQ(cluster.client().view()->routing->variable("late"), nullptr);
  more.set_version(2);
  MU_ASSERT_OK(cluster.client().SetRouting(more));
  MU_ASSERT_OK(cluster.Configure());
  MU_ASSERT_OK(cluster.admin().ReadVariable(cluster.context(), "late"));
  more.set_version(1);
  more.clear_variables();
  MU_ASSERT_OK(cluster.client().SetRouting(more));
  EXPECT_NE(cluster.client().view()->routing->variable("late"), nullptr);
}

// The name of a pod or a container is kept when another takes its place, on another machine: a
// channel to the former one would find out late.
TEST(PsClientTest, AReplacedServerOfTheSameAddressGetsANewChannel) {
  PsCluster cluster(2);
  pb::RoutingProto routing = cluster.client().view()->routing->proto();
  std::vector<std::string> connected;
  const auto transport = NewMemoryTransport();
  PsClient client([&](const std::string& address) {
    connected.push_back(address);
    return transport->Connect(address, pb::ROLE_PSSERVER);
  });
  MU_ASSERT_OK(client.SetRouting(routing));
  const std::string first = routing.servers(0).address(), second = routing.servers(1).address();
  ASSERT_THAT(connected, ElementsAre(first, second));
  const auto before = client.view()->channels;

  routing.set_version(routing.version() + 1);
  MU_ASSERT_OK(client.SetRouting(routing));
  EXPECT_EQ(client.view()->channels, before) << "the same processes";

  routing.set_version(routing.version() + 1);
  routing.mutable_servers(1)->set_incarnation(77);
  MU_ASSERT_OK(client.SetRouting(routing));
  EXPECT_THAT(connected, ElementsAre(first, second, second));
  EXPECT_EQ(client.view()->channels[0], before[0]);
  EXPECT_NE(client.view()->channels[1], before[1]);
}

TEST(PsAdminTest, AssignAndRead) {
  PsCluster cluster(3);
  MU_ASSERT_OK(cluster.Configure());
  Tensor kernel(kFloat32, Shape({300, 700}));
  for (int64_t i = 0; i < kernel.elements(); ++i) kernel.data<float>()[i] = static_cast<float>(i);
  MU_ASSERT_OK(
      cluster.admin().AssignVariable(cluster.context(), FunctionId(1), "dense/kernel", kernel));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor read,
                          cluster.admin().ReadVariable(cluster.context(), "dense/kernel"));
  EXPECT_EQ(std::memcmp(read.raw(), kernel.raw(), kernel.bytes()), 0);
  EXPECT_THAT(cluster.admin().AssignVariable(cluster.context(), FunctionId(1), "dense/kernel",
                                             Tensor::Scalar<float>(1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("float32[300, 700]")));
  EXPECT_THAT(cluster.admin().AssignVariable(cluster.context(), FunctionId(1), "nothing", kernel),
              HasCode(absl::StatusCode::kNotFound));
  const Tensor zeros(kFloat32, Shape({300, 700}));
  EXPECT_THAT(
      cluster.admin().AssignVariable(cluster.context(), FunctionId(1), "dense/kernel", zeros),
      HasCode(absl::StatusCode::kInvalidArgument))
      << "the place is taken";
  MU_ASSERT_OK(
      cluster.admin().AssignVariable(cluster.context(), FunctionId(1), "dense/kernel", kernel))
      << "a repeat";
  Tensor infinite = Tensor::Of<float>(Shape({300, 700}), std::vector<float>(300 * 700, INFINITY));
  EXPECT_THAT(
      cluster.admin().AssignVariable(cluster.context(), FunctionId(2), "dense/kernel", infinite),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NaN or infinity")));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor again,
                          cluster.admin().ReadVariable(cluster.context(), "dense/kernel"));
  EXPECT_EQ(std::memcmp(again.raw(), kernel.raw(), kernel.bytes()), 0)
      << "all partitions know this one";
  EXPECT_THAT(cluster.admin().ReadVariable(cluster.context(), "nothing"),
              HasCode(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace mu
