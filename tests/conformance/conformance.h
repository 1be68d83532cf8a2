// What the conformance tests share: clusters and functions that say how often they ran.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/frontend/ops.h"
#include "tests/testing/cluster.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait.h"

namespace mu::testing {

// Long enough to be running until it is cancelled.
inline constexpr uint32_t kForever = 100'000'000;

// A cluster with a counter on every server and a function that adds 1 to each in every step.
struct CountingCluster {
  // Of the one variable that the counters are, spread over all servers.
  static constexpr int64_t kPartitions = 12;

  std::unique_ptr<TestCluster> cluster;
  Variable counter;
  Function count;

  Coordinator& c() { return cluster->coordinator(); }
  // For assignments and additions: the same value for each counter.
  static Tensor All(int64_t value) {
    return Tensor::Of<int64_t>(Shape({kPartitions}), std::vector<int64_t>(kPartitions, value));
  }
  // What each has counted. They may differ once a function was cancelled.
  std::vector<int64_t> Counts() {
    auto value = c().Read(counter);
    EXPECT_THAT(value, IsOk());
    if (!value.ok()) return {-1};
    const auto counts = value->flat<int64_t>();
    return {counts.begin(), counts.end()};
  }
  // What all of them have counted.
  int64_t Count() {
    const std::vector<int64_t> counts = Counts();
    EXPECT_THAT(counts, ::testing::Each(counts[0])) << "servers differ";
    return counts[0];
  }
};

inline absl::StatusOr<CountingCluster> StartCounting(TestClusterOptions options = {}) {
  CountingCluster result;
  MU_ASSIGN_OR_RETURN(result.cluster, TestCluster::Start(options));
  MU_ASSIGN_OR_RETURN(
      result.counter,
      result.c().CreateVariable({.name = "counter",
                                 .shape = Shape({CountingCluster::kPartitions}),
                                 .dtype = kInt64,
                                 .partitioner = FixedShards{CountingCluster::kPartitions}}));
  MU_ASSIGN_OR_RETURN(result.count, result.c().DefineFunction("count", [&](FunctionBuilder& f) {
    AssignAdd(result.counter, ConstantTensor(CountingCluster::All(1)));
    f.Return("before", Read(result.counter));
  }));
  return result;
}

// A function that fails: the logarithm of its argument, for which -1 is not good.
inline absl::StatusOr<Function> DefineLog(Coordinator& c, const std::string& name,
                                          float shift = 0) {
  return c.DefineFunction(name,
                          [&](FunctionBuilder& f) { f.Return("log", Log(f.Arg("x") + shift)); });
}

}  // namespace mu::testing
