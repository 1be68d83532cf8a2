// Schedule, Join, Done and Fetch, without faults or errors.
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "absl/time/clock.h"
#include "tests/conformance/conformance.h"

namespace mu {
namespace {

using testing::HasCode;
using testing::kForever;
using testing::StartCounting;
using testing::TestClusterOptions;

TEST(Conformance, ScheduleReturnsAtOnce) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  RemoteValue first = t.c().Schedule(t.count, {.steps = kForever});
  for (int i = 1; i < 100; ++i) t.c().Schedule(t.count);
  EXPECT_FALSE(first.Done());
  EXPECT_EQ(t.c().Stats().unfinished, 100u);
  t.c().Cancel();
  EXPECT_THAT(first.Fetch(), HasCode(absl::StatusCode::kCancelled));
}

TEST(Conformance, JoinWaitsForAll) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.workers = 2, .ps = 2}));
  std::vector<RemoteValue> values;
  for (int i = 0; i < 50; ++i) values.push_back(t.c().Schedule(t.count, {.steps = 3}));
  MU_ASSERT_OK(t.c().Join());
  for (const RemoteValue& value : values) {
    EXPECT_TRUE(value.Done());
    MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
    EXPECT_EQ(result.steps(), 3u);
  }
  EXPECT_EQ(t.Count(), 150);
}

TEST(Conformance, RepeatedJoin) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  MU_EXPECT_OK(t.c().Join()) << "nothing was scheduled";
  t.c().Schedule(t.count);
  MU_EXPECT_OK(t.c().Join());
  MU_EXPECT_OK(t.c().Join());
  EXPECT_EQ(t.Count(), 1);
}

TEST(Conformance, DonePolls) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  MU_ASSERT_OK_AND_ASSIGN(bool done, t.c().Done());
  EXPECT_TRUE(done);
  t.c().Schedule(t.count, {.steps = kForever});
  while (t.c().Stats().steps == 0) std::this_thread::yield();
  MU_ASSERT_OK_AND_ASSIGN(done, t.c().Done());
  EXPECT_FALSE(done) << "it runs";
  t.c().Cancel();
  MU_ASSERT_OK(t.c().Schedule(t.count, {.steps = 10}).Fetch());
  while (!done) {
    MU_ASSERT_OK_AND_ASSIGN(done, t.c().Done());
    std::this_thread::yield();
  }
}

TEST(Conformance, FetchWaits) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result,
                          t.c().Fetch(t.c().Schedule(t.count, {.steps = 200})));
  ASSERT_EQ(result.steps(), 200u);
  for (size_t i = 0; i < 200; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(const Tensor before, result.Get(i, "before"));
    EXPECT_EQ(*before.data<int64_t>(), static_cast<int64_t>(i));
  }
}

// Packing goes by it (StepPacer).
TEST(Conformance, AResultTellsHowLongItsWorkerHadNothingToDo) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult first,
                          t.c().Schedule(t.count, {.steps = 2}).Fetch());
  ASSERT_EQ(first.steps(), 2u);
  EXPECT_EQ(first.gap(0), absl::ZeroDuration()) << "it ran nothing before";
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult second,
                          t.c().Schedule(t.count, {.steps = 2}).Fetch());
  ASSERT_EQ(second.steps(), 2u);
  EXPECT_GT(second.gap(0), absl::ZeroDuration());
  EXPECT_EQ(second.gap(1), absl::ZeroDuration());
}

TEST(Conformance, FetchStructure) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.workers = 2, .ps = 1}));
  MU_ASSERT_OK_AND_ASSIGN(
      const Function function, t.c().DefineFunction("many", [](FunctionBuilder& f) {
        const Sym x = f.Arg("x");
        f.Return("scalar", x * 2);
        f.Return("by_shape/vector", ConstantTensor(Tensor::Of<float>(Shape({3}), {1, 2, 3})) * x);
        f.Return("by_shape/matrix", ConstantTensor(Tensor::Of<int32_t>(Shape({2, 1}), {4, 5})));
      }));
  // Values in whatever the program keeps them, as names with slashes keep what a step returns.
  std::map<std::string, std::vector<RemoteValue>> values;
  for (const std::string group : {"a", "b"}) {
    for (int i = 0; i < 3; ++i) {
      const double x = (group == "a" ? 1.5 : -1.5) * i;
      values[group].push_back(t.c().Schedule(function, {.steps = 2, .args = {{"x", x}}}));
    }
  }
  for (const auto& [group, calls] : values) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const float x = (group == "a" ? 1.5f : -1.5f) * static_cast<float>(i);
      MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, calls[i].Fetch());
      ASSERT_EQ(result.steps(), 2u);
      for (size_t step = 0; step < 2; ++step) {
        MU_ASSERT_OK_AND_ASSIGN(const Tensor scalar, result.Get(step, "scalar"));
        EXPECT_EQ(*scalar.data<float>(), 2 * x);
        MU_ASSERT_OK_AND_ASSIGN(const Tensor vector, result.Get(step, "by_shape/vector"));
        EXPECT_THAT(vector.flat<float>(), ::testing::ElementsAre(x, 2 * x, 3 * x));
        MU_ASSERT_OK_AND_ASSIGN(const Tensor matrix, result.Get(step, "by_shape/matrix"));
        EXPECT_EQ(matrix.shape(), Shape({2, 1}));
      }
      MU_ASSERT_OK_AND_ASSIGN(const double mean, result.Mean("scalar"));
      EXPECT_EQ(mean, 2 * x);
      EXPECT_THAT(result.Get(0, "skalar"), HasCode(absl::StatusCode::kNotFound));
    }
  }
}

TEST(Conformance, QueueBoundBlocksSchedule) {
  TestClusterOptions options;
  options.workers = 0;  // nothing leaves the queue
  options.queue_bound = 2;
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting(options));
  std::atomic<int> scheduled{0};
  std::thread user([&] {
    for (int i = 0; i < 10; ++i) {
      t.c().Schedule(t.count);
      ++scheduled;
    }
  });
  while (scheduled < 2) std::this_thread::yield();
  EXPECT_FALSE(testing::Eventually([&] { return scheduled > 2; }, absl::Milliseconds(100)));
  const absl::Status started = t.cluster->StartWorker(0);
  user.join();
  MU_ASSERT_OK(started);
  MU_ASSERT_OK(t.c().Join());
  EXPECT_EQ(t.Count(), 10);
}

TEST(Conformance, ConcurrentSchedule) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.workers = 2, .ps = 2}));
  std::vector<std::thread> users;
  for (int u = 0; u < 8; ++u) {
    users.emplace_back([&] {
      for (int i = 0; i < 25; ++i) t.c().Schedule(t.count);
    });
  }
  for (auto& user : users) user.join();
  MU_ASSERT_OK(t.c().Join());
  EXPECT_EQ(t.Count(), 200);
}

TEST(Conformance, WorkerIndexVisible) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.workers = 2}));
  MU_ASSERT_OK_AND_ASSIGN(const Function who, t.c().DefineFunction("who", [](FunctionBuilder& f) {
    f.Return("worker", f.WorkerIndex());
  }));
  std::set<int64_t> seen;
  while (seen.size() < 2) {  // ends when the second worker has been given something as well
    std::vector<RemoteValue> values;
    for (int i = 0; i < 20; ++i) values.push_back(t.c().Schedule(who));
    for (const RemoteValue& value : values) {
      MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
      MU_ASSERT_OK_AND_ASSIGN(const Tensor worker, result.Get(0, "worker"));
      seen.insert(*worker.data<int64_t>());
    }
  }
  EXPECT_THAT(seen, ::testing::ElementsAre(0, 1));
}

TEST(Conformance, CoordinatorDestroyed) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.workers = 2, .ps = 2}));
  const RemoteValue running = t.c().Schedule(t.count, {.steps = kForever});
  std::vector<RemoteValue> queued;
  for (int i = 0; i < 20; ++i) queued.push_back(t.c().Schedule(t.count, {.steps = kForever}));
  while (t.c().Stats().steps == 0) std::this_thread::yield();
  const absl::Time begin = absl::Now();
  t.cluster->DestroyCoordinator();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(1));
  EXPECT_THAT(running.Fetch(), HasCode(absl::StatusCode::kCancelled));
  for (const RemoteValue& value : queued)
    EXPECT_THAT(value.Fetch(), HasCode(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace mu
