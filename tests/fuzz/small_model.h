// What servers and workers hold in the fuzz targets, small enough to be made for each input.
#pragma once

#include "common/base/check.h"
#include "common/sharding/placement.h"
#include "proto/coordinator.pb.h"
#include "proto/table.pb.h"

namespace mu::fuzzing {

// Variables: 0 "weights" float [4, 3] Adagrad in two partitions, 1 "bias" float [] SGD, 2 "steps"
// int64 [], 3 "seen" int32 [2]. Tables: 100 "items" [40, 2] Adagrad and 101 "users" [9, 1] SGD, in
// four and three partitions. All on server 0.
inline muster::RoutingProto SmallModel() {
  muster::RoutingProto routing;
  routing.set_version(1);
  routing.set_generation(1);
  muster::ServerProto* const server = routing.add_servers();
  server->set_address("memory:1");
  server->set_incarnation(1);
  const auto variable = [&](uint32_t id, const char* name, muster::DType dtype,
                            std::initializer_list<int64_t> dims) {
    muster::VariableProto* const v = routing.add_variables();
    v->set_id(id);
    v->set_name(name);
    v->set_dtype(dtype);
    v->mutable_shape()->mutable_dims()->Add(dims.begin(), dims.end());
    return v;
  };
  auto* const weights = variable(0, "weights", muster::FLOAT32, {4, 3});
  weights->mutable_initializer()->mutable_normal()->set_stddev(1);
  weights->mutable_optimizer()->mutable_adagrad()->set_learning_rate(0.1f);
  weights->mutable_partitioner()->set_fixed_shards(2);
  weights->set_trainable(true);
  auto* const bias = variable(1, "bias", muster::FLOAT32, {});
  bias->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.5f);
  bias->set_trainable(true);
  variable(2, "steps", muster::INT64, {});
  variable(3, "seen", muster::INT32, {2})->mutable_initializer()->mutable_constant()->set_value(7);
  const auto table = [&](uint32_t id, const char* name, uint64_t rows, uint32_t dim,
                         uint32_t partitions) {
    muster::TableProto* const t = routing.add_tables();
    t->set_id(id);
    t->set_name(name);
    t->set_rows(rows);
    t->set_dim(dim);
    t->set_partitions(partitions);
    return t;
  };
  auto* const items = table(100, "items", 40, 2, 4);
  items->mutable_initializer()->mutable_uniform()->set_high(1);
  items->mutable_optimizer()->mutable_adagrad()->set_learning_rate(0.1f);
  table(101, "users", 9, 1, 3)->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.5f);
  MU_CHECK(mu::PlaceAll(&routing).ok());
  return routing;
}

inline muster::RequestContext SmallContext() {
  muster::RequestContext context;
  context.set_job(1);
  context.set_epoch(1);
  context.set_generation(1);
  return context;
}

// Whether a server or worker can hold what is defined without taking much memory. What a
// coordinator defines may be large; that is no error.
inline bool IsSmall(const muster::RoutingProto& routing) {
  constexpr double kMostElements = 1 << 16;
  double elements = 0;
  for (const muster::VariableProto& variable : routing.variables()) {
    double size = 1;
    for (const int64_t dim : variable.shape().dims()) size *= static_cast<double>(dim);
    elements += size;
  }
  for (const muster::TableProto& table : routing.tables()) {
    elements += table.dim();
    // The bitmaps of rows are made at once.
    elements += static_cast<double>(table.rows()) / 32;
  }
  return elements <= kMostElements;
}

}  // namespace mu::fuzzing
