// What the conformance tests share: clusters and functions that say how often they ran.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "coordinator/frontend/ops.h"
#include "tests/testing/cluster.h"
#include "tests/testing/matchers.h"

namespace mu::testing {

// Long enough to be running until it is cancelled.
inline constexpr uint32_t kForever = 100'000'000;

// Looks again and again until `condition` does not hold any more.
template <typename Condition>
void WaitWhile(const Condition& condition) {
  while (condition()) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

// A cluster with a counter and a function that adds 1 to it in every step.
struct CountingCluster {
  std::unique_ptr<TestCluster> cluster;
  Variable counter;
  Function count;

  Coordinator& c() { return cluster->coordinator(); }
  int64_t Count() {
    auto value = c().Read(counter);
    EXPECT_THAT(value, IsOk());
    return value.ok() ? *value->data<int64_t>() : -1;
  }
};

inline absl::StatusOr<CountingCluster> StartCounting(TestClusterOptions options = {}) {
  CountingCluster result;
  MU_ASSIGN_OR_RETURN(result.cluster, TestCluster::Start(options));
  MU_ASSIGN_OR_RETURN(result.counter,
                      result.c().CreateVariable({.name = "counter", .dtype = kInt64}));
  MU_ASSIGN_OR_RETURN(result.count, result.c().DefineFunction("count", [&](FunctionBuilder& f) {
    AssignAdd(result.counter, 1);
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
