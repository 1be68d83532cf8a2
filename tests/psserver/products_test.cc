// Products with rows of a variable that stay on their servers, and their gradients. Over the
// transport in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/psserver/cluster.h"
#include "tests/psserver/frames.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::PsCluster;
using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kSeen = 3, kKernel = 5;
constexpr int64_t kRows = 300, kColumns = 700;  // of the kernel

// Factors of a gradient of the kernel: dy [batch, rows] and x [batch, columns].
struct Factors {
  static constexpr int64_t kBatch = 5;
  explicit Factors(int seed) : dy(kBatch * kRows), x(kBatch * kColumns) {
    for (size_t i = 0; i < dy.size(); ++i) dy[i] = 0.02f * static_cast<float>((i * seed) % 13);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>((i + seed) % 17);
  }
  VariableWrite Write() const {
    return {.variable = kKernel,
            .kind = VariableWrite::kProductGradient,
            .value = dy.data(),
            .x = x.data(),
            .batch = kBatch};
  }
  std::vector<float> Whole() const {
    std::vector<float> gradient(kRows * kColumns);
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t i = 0; i < kRows; ++i) {
        for (int64_t j = 0; j < kColumns; ++j)
          gradient[i * kColumns + j] += dy[b * kRows + i] * x[b * kColumns + j];
      }
    }
    return gradient;
  }
  std::vector<float> dy, x;
};

struct AfterAStep {
  std::vector<float> y = std::vector<float>(Factors::kBatch * kRows);
  std::vector<float> dx = std::vector<float>(Factors::kBatch * kColumns);
  Tensor kernel;
};

AfterAStep StepOn(uint32_t servers, const ProductLimits& limits = {}, uint64_t* pulls = nullptr) {
  PsCluster cluster(servers);
  MU_EXPECT_OK(cluster.Configure());
  const Factors factors(3);
  AfterAStep after;
  PsSession session(&cluster.client(),
                    {.context = cluster.context(), .function = 1, .products = limits});
  session.BeginStep(0);
  const ProductRead products[] = {
      {kKernel, false, Factors::kBatch, factors.x.data(), after.y.data()},
      {kKernel, true, Factors::kBatch, factors.dy.data(), after.dx.data()}};
  MU_EXPECT_OK(session.Multiply(products));
  if (pulls != nullptr) *pulls = cluster.server(0).GetStats({})->pulls();
  const VariableWrite write = factors.Write();
  MU_EXPECT_OK(session.Push({&write, 1}, {}));
  auto kernel = cluster.admin().ReadVariable(cluster.context(), "dense/kernel");
  MU_EXPECT_OK(kernel);
  after.kernel = *std::move(kernel);
  return after;
}

TEST(ProductsTest, AreTheSameBitsOnAnyNumberOfServers) {
  const AfterAStep one = StepOn(1);
  for (const uint32_t servers : {2, 3}) {
    const AfterAStep several = StepOn(servers);
    EXPECT_EQ(several.y, one.y);
    EXPECT_EQ(several.dx, one.dx);
    EXPECT_EQ(several.kernel.flat<float>(), one.kernel.flat<float>());
  }
}

TEST(ProductsTest, HaveTheSameBitsInSeveralCalls) {
  const AfterAStep one = StepOn(1);
  for (const uint32_t servers : {1, 2, 3}) {
    uint64_t pulls = 0;
    // Two records of a partition, but not four of two.
    const AfterAStep cut = StepOn(servers, {.multiply_adds = 150'000, .least_records = 2}, &pulls);
    EXPECT_EQ(cut.y, one.y);
    EXPECT_EQ(cut.dx, one.dx);
    if (servers == 1) {
      EXPECT_EQ(pulls, 2u * 2 * 3) << "products, parts of the batch, partitions";
    }
  }
  uint64_t pulls = 0;
  StepOn(1, {}, &pulls);
  EXPECT_EQ(pulls, 1u);
}

// Says what calls may take.
class WatchedChannel final : public Channel {
 public:
  WatchedChannel(std::shared_ptr<Channel> channel, absl::Duration* timeout)
      : channel_(std::move(channel)), timeout_(timeout) {}

  std::shared_ptr<ClientCall> Unary(const std::string& method, Buffer request, CallOptions options,
                                    std::function<void(absl::Status, Buffer)> done) override {
    *timeout_ = options.timeout;
    return channel_->Unary(method, std::move(request), options, std::move(done));
  }
  std::shared_ptr<ClientCall> ServerStream(const std::string& method, Buffer request,
                                           CallOptions options, std::function<void(Buffer)> message,
                                           std::function<void(absl::Status)> done) override {
    return channel_->ServerStream(method, std::move(request), options, std::move(message),
                                  std::move(done));
  }
  std::shared_ptr<ClientStream> Converse(const std::string& method, Conversation conversation,
                                         std::function<void(absl::Status)> done) override {
    return channel_->Converse(method, std::move(conversation), std::move(done));
  }

 private:
  const std::shared_ptr<Channel> channel_;
  absl::Duration* const timeout_;
};

TEST(ProductsTest, HaveTimeToBeComputedAndToTravel) {
  constexpr int64_t kBatch = 1000;
  constexpr absl::Duration kCall = absl::Seconds(10);
  const absl::Duration computing = ComputeTimeout(kBatch * kRows * kColumns);
  PsCluster cluster(1);
  MU_ASSERT_OK(cluster.Configure());
  absl::Duration timeout;
  const auto connect = [&](const std::string& address) {
    return std::make_shared<WatchedChannel>(cluster.transport().Connect(address, pb::ROLE_PSSERVER),
                                            &timeout);
  };
  std::vector<float> x(kBatch * kColumns), y(kBatch * kRows), bias(1), values(kRows * kColumns);
  const ProductRead product{kKernel, false, kBatch, x.data(), y.data()};
  const VariableWrite gradient{.variable = kKernel,
                               .kind = VariableWrite::kProductGradient,
                               .value = y.data(),
                               .x = x.data(),
                               .batch = kBatch};
  const VariableRead read{1, bias.data()};
  for (const bool bounded_by_total : {false, true}) {
    RetryPolicy policy;
    (bounded_by_total ? policy.total_timeout : policy.call_timeout) = kCall;
    (bounded_by_total ? policy.call_timeout : policy.total_timeout) = absl::InfiniteDuration();
    PsClient client(connect, policy);
    client.SetRouting(cluster.client().view()->routing);
    PsSession session(&client,
                      {.context = cluster.context(), .function = bounded_by_total ? 2u : 1u});
    // So many bytes and perhaps a header.
    const auto expect = [&](absl::Duration least, size_t bytes) {
      least += kCall + TransferTimeout(bytes);
      const absl::Duration over = bounded_by_total ? absl::Seconds(2) : absl::ZeroDuration();
      EXPECT_GE(timeout, least - over);
      EXPECT_LE(timeout, least + TransferTimeout(1000));
    };
    MU_ASSERT_OK(session.Multiply({&product, 1}));
    expect(computing, (x.size() + y.size()) * sizeof(float));
    MU_ASSERT_OK(session.Push({&gradient, 1}, {}));
    expect(computing, (x.size() + y.size()) * sizeof(float));
    MU_ASSERT_OK(session.Pull({&read, 1}, {}));
    expect(absl::ZeroDuration(), 0);
    const VariableRead kernel{kKernel, values.data()};
    MU_ASSERT_OK(session.Pull({&kernel, 1}, {}));
    expect(absl::ZeroDuration(), values.size() * sizeof(float));
  }
}

// Of several variables, each has the x that is its own.
TEST(ProductsTest, SeveralVariablesAreMultipliedAndTrainedInOneCall) {
  constexpr uint32_t kWeights = 0;  // [6, 5], of one partition
  const Factors factors(3);
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, dy(2 * 6, 0.5f);
  for (const uint32_t servers : {1, 3}) {
    PsCluster cluster(servers), whole(servers);
    MU_ASSERT_OK(cluster.Configure());
    MU_ASSERT_OK(whole.Configure());
    const auto read = [](PsCluster& from, const char* name) {
      auto value = from.admin().ReadVariable(from.context(), name);
      MU_EXPECT_OK(value);
      return *std::move(value);
    };
    const Tensor weights = read(cluster, "weights");
    PsSession session = cluster.Session(1), other = whole.Session(1);
    session.BeginStep(0);
    other.BeginStep(0);
    std::vector<float> y(2 * 6), of_kernel(Factors::kBatch * kRows);
    const ProductRead products[] = {
        {kKernel, false, Factors::kBatch, factors.x.data(), of_kernel.data()},
        {kWeights, false, 2, x.data(), y.data()}};
    MU_ASSERT_OK(session.Multiply(products));
    for (size_t b = 0; b < 2; ++b) {
      for (size_t i = 0; i < 6; ++i) {
        float sum = 0;
        for (size_t j = 0; j < 5; ++j) sum += x[5 * b + j] * weights.data<float>()[5 * i + j];
        EXPECT_NEAR(y[6 * b + i], sum, 1e-4);
      }
    }
    const VariableWrite parts[] = {factors.Write(),
                                   {.variable = kWeights,
                                    .kind = VariableWrite::kProductGradient,
                                    .value = dy.data(),
                                    .x = x.data(),
                                    .batch = 2}};
    MU_ASSERT_OK(session.Push(parts, {}));
    const std::vector<float> of_weights = {3.5, 4.5, 5.5, 6.5, 7.5, 3.5, 4.5, 5.5, 6.5, 7.5,
                                           3.5, 4.5, 5.5, 6.5, 7.5, 3.5, 4.5, 5.5, 6.5, 7.5,
                                           3.5, 4.5, 5.5, 6.5, 7.5, 3.5, 4.5, 5.5, 6.5, 7.5};
    const std::vector<float> gradient = factors.Whole();
    const VariableWrite dense[] = {{kKernel, VariableWrite::kGradient, gradient.data()},
                                   {kWeights, VariableWrite::kGradient, of_weights.data()}};
    MU_ASSERT_OK(other.Push(dense, {}));
    for (const char* name : {"weights", "dense/kernel"}) {
      const Tensor a = read(cluster, name), b = read(whole, name);
      EXPECT_THAT(a.flat<float>(),
                  ::testing::Pointwise(::testing::FloatNear(1e-4f), b.flat<float>()))
          << name;
    }
  }
}

// Each factor is a finite number, but not the product of two of them.
TEST(ProductsTest, GradientsThatAreNotFiniteChangeNothing) {
  PsCluster cluster(1);
  MU_ASSERT_OK(cluster.Configure());
  const auto read = [&](const char* name) {
    auto value = cluster.admin().ReadVariable(cluster.context(), name);
    MU_EXPECT_OK(value);
    return *std::move(value);
  };
  const Tensor kernel = read("dense/kernel"), bias = read("bias");
  Factors factors(3);
  factors.dy.back() = factors.x.back() = 1e30f;  // of the last row and column alone
  const float gradient = 1;
  const VariableWrite writes[] = {{1, VariableWrite::kGradient, &gradient}, factors.Write()};
  PsSession session = cluster.Session();
  session.BeginStep(0);
  EXPECT_THAT(session.Push(writes, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'dense/kernel'"), HasSubstr("NaN or infinity"))));
  const Tensor kernel_after = read("dense/kernel"), bias_after = read("bias");
  EXPECT_EQ(kernel_after.flat<float>(), kernel.flat<float>());
  EXPECT_EQ(bias_after.flat<float>(), bias.flat<float>());
}

// A round that is applied with factors of gradients, and with rows that are added to, is one of
// whole updates.
TEST(ProductsTest, RoundsKeepThemAsWholeGradients) {
  const auto kernel_after = [](bool whole) {
    PsCluster cluster(1);
    MU_EXPECT_OK(cluster.Configure());
    pb::CommitRoundRequest commit;
    *commit.mutable_context() = cluster.context();
    commit.set_round(1);
    for (uint64_t function = 1; function <= 2; ++function) {
      const Factors factors(static_cast<int>(function));
      const std::vector<float> gradient = factors.Whole();
      const std::vector<int64_t> rows = {2, static_cast<int64_t>(function)};
      const std::vector<int32_t> counts = {10, 1};
      std::vector<int32_t> all(4);
      for (size_t i = 0; i < rows.size(); ++i) all[static_cast<size_t>(rows[i])] += counts[i];
      const VariableWrite dense[] = {{kKernel, VariableWrite::kGradient, gradient.data()},
                                     {kSeen, VariableWrite::kAssignAdd, all.data()}};
      const VariableWrite parts[] = {factors.Write(),
                                     {.variable = kSeen,
                                      .kind = VariableWrite::kScatterAdd,
                                      .value = counts.data(),
                                      .rows = rows}};
      PsSession session(&cluster.client(), {.context = cluster.context(),
                                            .function = function,
                                            .job_step = 1,
                                            .round = 1,
                                            .most_contributions = 2});
      MU_EXPECT_OK(session.Push(whole ? dense : parts, {}));
      auto& contribution = *commit.add_contributions();
      contribution.set_function(function);
      contribution.set_weight(static_cast<uint32_t>(function));
    }
    MU_EXPECT_OK(cluster.server(0).CommitRound(commit));
    auto seen = cluster.admin().ReadVariable(cluster.context(), "seen");
    MU_EXPECT_OK(seen);
    EXPECT_THAT(seen->flat<int32_t>(), ElementsAre(7, 8, 28, 7));
    auto kernel = cluster.admin().ReadVariable(cluster.context(), "dense/kernel");
    MU_EXPECT_OK(kernel);
    return *std::move(kernel);
  };
  const Tensor whole = kernel_after(true), parts = kernel_after(false);
  EXPECT_THAT(parts.flat<float>(),
              ::testing::Pointwise(::testing::FloatNear(1e-5f), whole.flat<float>()));
}

// The product gives the clock, and the gradient that comes as factors is late by it.
TEST(ProductsTest, TheirGradientsAreLate) {
  PsCluster cluster(1);
  MU_ASSERT_OK(cluster.Configure());
  pb::StalenessProto rule;
  const auto session_of = [&](uint64_t function) {
    return PsSession(
        &cluster.client(),
        {.context = cluster.context(), .function = function, .job_step = 1, .staleness = &rule});
  };
  const Factors factors(2);
  const auto step = [&](uint64_t function, const std::function<void()>& meanwhile) {
    PsSession session = session_of(function);
    std::vector<float> y(Factors::kBatch * kRows);
    const ProductRead product{kKernel, false, Factors::kBatch, factors.x.data(), y.data()};
    MU_EXPECT_OK(session.Multiply({&product, 1}));
    meanwhile();
    const VariableWrite write = factors.Write();
    MU_EXPECT_OK(session.Push({&write, 1}, {}));
    return session.push_late();
  };
  EXPECT_EQ(step(1, [] {}), 0u);
  EXPECT_EQ(step(2, [&] { step(3, [&] { step(4, [] {}); }); }), 2u);
}

}  // namespace
}  // namespace mu
