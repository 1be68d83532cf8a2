// A small model with every kind of variable and two tables, for tests of servers and their clients.
#pragma once

#include <string>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/sharding/placement.h"
#include "proto/table.pb.h"

namespace mu::testing {

// Variables: 0 "weights" float [6, 5] Adagrad, normal; 1 "bias" float [] SGD; 2 "steps" int64 []; 3
// "seen" int32 [4]; 4 "average" float [3], no optimizer; 5 "kernel" float [300, 700], Adagrad, 3
// partitions. Tables: 100 "items" [1000, 16] Adagrad, normal; 101 "users" [500, 4] SGD, zeros.
inline pb::RoutingProto SmallModel(uint32_t servers) {
  pb::RoutingProto routing;
  routing.set_version(1);
  for (uint32_t s = 0; s < servers; ++s) routing.add_servers()->set_index(s);
  const auto variable = [&](uint32_t id, const std::string& name, pb::DType dtype,
                            std::vector<int64_t> dims) {
    pb::VariableProto* v = routing.add_variables();
    v->set_id(id);
    v->set_name(name);
    v->set_dtype(dtype);
    v->mutable_shape();
    for (int64_t dim : dims) v->mutable_shape()->add_dims(dim);
    return v;
  };
  const auto normal = [](pb::InitializerProto* initializer, uint64_t seed) {
    initializer->mutable_normal()->set_stddev(0.1f);
    initializer->set_seed(seed);
  };
  const auto adagrad = [](pb::OptimizerProto* optimizer) {
    optimizer->mutable_adagrad()->set_learning_rate(0.05f);
    optimizer->mutable_adagrad()->set_initial_accumulator(0.1f);
  };
  auto* weights = variable(0, "weights", pb::FLOAT32, {6, 5});
  normal(weights->mutable_initializer(), 3);
  adagrad(weights->mutable_optimizer());
  variable(1, "bias", pb::FLOAT32, {})->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.5f);
  variable(2, "steps", pb::INT64, {});
  variable(3, "seen", pb::INT32, {4})->mutable_initializer()->mutable_constant()->set_value(7);
  variable(4, "average", pb::FLOAT32, {3});
  auto* kernel = variable(5, "dense/kernel", pb::FLOAT32, {300, 700});
  normal(kernel->mutable_initializer(), 4);
  adagrad(kernel->mutable_optimizer());

  const auto table = [&](uint32_t id, const std::string& name, uint64_t rows, uint32_t dim) {
    pb::TableProto* t = routing.add_tables();
    t->set_id(id);
    t->set_name(name);
    t->set_rows(rows);
    t->set_dim(dim);
    t->set_partitions(64);
    return t;
  };
  auto* items = table(100, "items", 1000, 16);
  normal(items->mutable_initializer(), 5);
  adagrad(items->mutable_optimizer());
  table(101, "users", 500, 4)->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.5f);
  MU_CHECK(PlaceAll(&routing).ok());
  return routing;
}

}  // namespace mu::testing
