// Functions that the worker's tests install.
#pragma once

#include "tests/testing/graph_maker.h"
#include "tests/worker/worker_cluster.h"

namespace mu::testing {

inline Tensor One() { return Tensor::Scalar<int64_t>(1); }

// Adds the variables "steps" (int64) and "total" (float32), which the functions below change.
inline void AddCounters(WorkerCluster* cluster) {
  cluster->AddVariable("steps", muster::INT64, Shape());
  cluster->AddVariable("total", muster::FLOAT32, Shape());
}
inline int64_t Steps(WorkerCluster& cluster) { return *cluster.Read("steps").data<int64_t>(); }
inline float Total(WorkerCluster& cluster) { return *cluster.Read("total").data<float>(); }

// Every step: steps += 1; total += sum of the batch's x. Returns that sum, and steps before the
// step.
inline muster::FunctionProto SumBatches() {
  GraphMaker g;
  g.function().set_name("sum_batches");
  const auto x = g.Column("x", muster::FLOAT32, Shape({-1}));
  const auto sum = g.Op("reduce_sum", {x});
  g.Update("assign_add", "steps", 0, muster::INT64, Shape(), g.Constant(One()));
  g.Update("assign_add", "total", 1, muster::FLOAT32, Shape(), sum);
  g.Return("sum", sum);
  g.Return("before", g.Read("steps", 0, muster::INT64, Shape()));
  return g.function();
}

// Reads no data: steps += 1. Returns steps before the step and the worker's index.
inline muster::FunctionProto CountSteps() {
  GraphMaker g;
  g.function().set_name("count_steps");
  g.function().set_dataset(0);
  g.Update("assign_add", "steps", 0, muster::INT64, Shape(), g.Constant(One()));
  g.Return("before", g.Read("steps", 0, muster::INT64, Shape()));
  g.Return("worker", g.Op("worker_index"));
  return g.function();
}

template <typename T>
T ValueOf(const muster::StepResult& step, int index) {
  return *Tensor::FromProto(step.returns(index)).value().template data<T>();
}

}  // namespace mu::testing
