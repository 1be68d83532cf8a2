#include "common/sharding/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/sharding/partition.h"
#include "common/sharding/routing.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;

pb::RoutingProto Model(int servers) {
  pb::RoutingProto routing;
  for (int s = 0; s < servers; ++s) routing.add_servers()->set_index(s);
  for (uint32_t v = 0; v < 6; ++v) {
    auto* variable = routing.add_variables();
    variable->set_id(v);
    variable->set_name("v" + std::to_string(v));
    variable->set_dtype(muster::FLOAT32);
    variable->mutable_shape()->add_dims(100 * (v + 1) * (v + 1));
    variable->mutable_shape()->add_dims(64);
  }
  for (uint32_t t = 0; t < 5; ++t) {
    auto* table = routing.add_tables();
    table->set_id(t);
    table->set_name("t" + std::to_string(t));
    table->set_rows(10 + 1000 * t);
    table->set_dim(8);
  }
  return routing;
}

TEST(PlacementTest, EveryPartitionHasAServerAndBytesAreBalanced) {
  for (int servers : {1, 2, 3, 7}) {
    pb::RoutingProto routing = Model(servers);
    MU_ASSERT_OK(PlaceAll(&routing));
    MU_ASSERT_OK_AND_ASSIGN(const auto checked, Routing::Create(routing));
    std::map<uint32_t, double> bytes;
    for (const auto& variable : routing.variables()) {
      const VariableRoute* route = checked->variable(variable.id());
      ASSERT_NE(route, nullptr);
      for (size_t p = 0; p < route->servers.size(); ++p)
        bytes[route->servers[p]] += route->sizes[p];
    }
    for (const auto& table : routing.tables()) {
      for (uint32_t p = 0; p < table.partitions(); ++p) {
        bytes[table.placement(p)] += TablePartitionRows(table.rows(), table.partitions(), p) * 32.0;
      }
    }
    double total = 0, most = 0;
    for (const auto& [server, load] : bytes) {
      total += load;
      most = std::max(most, load);
    }
    EXPECT_LT(most, 1.5 * total / servers) << servers << " servers";
  }
}

TEST(PlacementTest, SameRoutingSamePlacement) {
  pb::RoutingProto a = Model(3), b = Model(3);
  MU_ASSERT_OK(PlaceAll(&a));
  MU_ASSERT_OK(PlaceAll(&b));
  EXPECT_EQ(a.SerializeAsString(), b.SerializeAsString());
}

TEST(PlacementTest, WhatIsPlacedStays) {
  pb::RoutingProto routing = Model(3);
  MU_ASSERT_OK(PlaceAll(&routing));
  pb::RoutingProto more = routing;
  auto* table = more.add_tables();
  table->set_id(77);
  table->set_name("late");
  table->set_rows(1000);
  table->set_dim(4);
  MU_ASSERT_OK(PlaceAll(&more));
  EXPECT_EQ(more.tables(5).placement_size(), 64);
  more.mutable_tables()->RemoveLast();
  EXPECT_EQ(more.SerializeAsString(), routing.SerializeAsString());
}

TEST(PlacementTest, PartitionsDoNotDependOnServers) {
  pb::RoutingProto one = Model(1), three = Model(3);
  MU_ASSERT_OK(PlaceAll(&one));
  MU_ASSERT_OK(PlaceAll(&three));
  for (int v = 0; v < one.variables_size(); ++v) {
    EXPECT_THAT(one.variables(v).partition_starts(),
                ::testing::ElementsAreArray(three.variables(v).partition_starts()));
  }
}

TEST(PlacementTest, NoServersOrHalfAPlacementIsRefused) {
  pb::RoutingProto routing = Model(0);
  EXPECT_THAT(PlaceAll(&routing), HasCode(absl::StatusCode::kFailedPrecondition));
  routing = Model(2);
  routing.mutable_tables(0)->add_placement(0);
  EXPECT_THAT(PlaceAll(&routing), HasCode(absl::StatusCode::kInvalidArgument));
}

std::vector<uint32_t> PlacementsOf(const pb::RoutingProto& routing) {
  std::vector<uint32_t> placements;
  for (const auto& variable : routing.variables())
    placements.insert(placements.end(), variable.placement().begin(), variable.placement().end());
  for (const auto& table : routing.tables())
    placements.insert(placements.end(), table.placement().begin(), table.placement().end());
  return placements;
}

TEST(PlacementTest, RoundRobinGoesOnWhereItWas) {
  pb::RoutingProto routing = Model(3);
  MU_ASSERT_OK(PlaceAll(&routing, PlaceRoundRobin{}));
  std::vector<uint32_t> placements = PlacementsOf(routing);
  for (size_t p = 0; p < placements.size(); ++p) ASSERT_EQ(placements[p], p % 3) << p;
  auto* table = routing.add_tables();
  table->set_id(77);
  table->set_rows(1000);
  table->set_dim(4);
  MU_ASSERT_OK(PlaceAll(&routing, PlaceRoundRobin{}));
  placements = PlacementsOf(routing);
  EXPECT_EQ(routing.tables(5).placement(0), (placements.size() - 64) % 3);
}

// Two small variables that everybody reads, and two large ones that nobody does.
TEST(PlacementTest, MeasuredLoadIsBalancedRatherThanBytes) {
  pb::RoutingProto routing;
  for (int s = 0; s < 2; ++s) routing.add_servers()->set_index(s);
  for (const auto& [name, rows] : std::vector<std::pair<std::string, int>>{
           {"hot", 10}, {"cold", 1000}, {"cold too", 1000}, {"hot too", 10}}) {
    auto* variable = routing.add_variables();
    variable->set_name(name);
    variable->set_dtype(muster::FLOAT32);
    variable->mutable_shape()->add_dims(rows);
  }
  const auto placed = [&](const Placement& placement) {
    pb::RoutingProto copy = routing;
    MU_EXPECT_OK(PlaceAll(&copy, placement));
    return PlacementsOf(copy);
  };
  EXPECT_THAT(placed(PlaceByBytes{}), ::testing::ElementsAre(0, 1, 0, 1));
  const PlaceByLoad load{{{"hot", 1e9}, {"hot too", 1e9}, {"cold", 10}, {"cold too", 10}}};
  EXPECT_THAT(placed(load), ::testing::ElementsAre(0, 1, 1, 1)) << "1e9 against 20";
  EXPECT_THAT(placed(PlaceByLoad{}), ::testing::ElementsAre(0, 1, 0, 1)) << "nothing is known";
  // 1e5 for each byte of "hot": what is not known counts by its bytes.
  EXPECT_THAT(placed(PlaceByLoad{{{"hot", 4e6}}}), ::testing::ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(placed(PlaceByLoad{{{"hot", 4e6}, {"cold", 1}, {"cold too", 1}}}),
              ::testing::ElementsAre(0, 1, 1, 1));
}

// As before the first step of a job, or of what an earlier run did not use.
TEST(PlacementTest, WhatNobodyHasUsedIsSpreadByItsMemory) {
  pb::RoutingProto routing;
  for (int s = 0; s < 2; ++s) routing.add_servers()->set_index(s);
  std::map<std::string, double> none, one;
  for (int v = 0; v < 6; ++v) {
    auto* variable = routing.add_variables();
    variable->set_name("v" + std::to_string(v));
    variable->set_dtype(muster::FLOAT32);
    variable->mutable_shape()->add_dims(1000);
    none[variable->name()] = 0;
    one[variable->name()] = v == 0 ? 1e6 : 0;
  }
  const auto on_second = [&](const PlaceByLoad& load) {
    pb::RoutingProto copy = routing;
    MU_EXPECT_OK(PlaceAll(&copy, load));
    int64_t count = 0;
    for (const auto& variable : copy.variables()) count += variable.placement(0);
    return count;
  };
  EXPECT_EQ(on_second({none}), 3);
  EXPECT_EQ(on_second({one}), 5) << "all that is idle against the one that is used";
  one["v0"] = 0;
  one["new"] = 1e6;  // of a variable that there is not
  EXPECT_EQ(on_second({one}), 3);
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    pb::RoutingProto copy = routing;
    EXPECT_THAT(PlaceAll(&copy, PlaceByLoad{{{"v1", bad}}}),
                testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                  ::testing::HasSubstr("the load of 'v1'")));
  }
}

TEST(PlacementTest, AFunctionPlacesEachPartitionAndIsToldWhatIsThere) {
  pb::RoutingProto routing = Model(3);
  uint64_t told = 0, given = 0;
  std::map<std::string, uint32_t> partitions;
  const PlacementFunction function = [&](const PlacementRequest& request) {
    EXPECT_EQ(request.servers.size(), 3u);
    EXPECT_EQ(request.servers[2].index, 2u);
    told = 0;
    for (const auto& server : request.servers) told += server.bytes;
    EXPECT_EQ(told, given) << "what was placed before";
    given += request.bytes;
    EXPECT_EQ(request.partition, partitions[request.name]++);
    EXPECT_EQ(request.is_table, request.name[0] == 't');
    return request.is_table ? 2u : 1u;
  };
  MU_ASSERT_OK(PlaceAll(&routing, function));
  for (const auto& variable : routing.variables())
    EXPECT_THAT(variable.placement(), ::testing::Each(1u)) << variable.name();
  for (const auto& table : routing.tables()) {
    EXPECT_THAT(table.placement(), ::testing::Each(2u));
    EXPECT_EQ(partitions[table.name()], table.partitions());
  }
  routing = Model(3);
  EXPECT_THAT(PlaceAll(&routing, PlacementFunction([](const PlacementRequest&) { return 3u; })),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("server 3 for partition 0 of 'v0'")));
}

// Slots as wide as the rows count as the rows do; a number a row counts as one.
TEST(PlacementTest, SlotsAreBytes) {
  const auto placed = [](const muster::OptimizerProto& first) {
    pb::RoutingProto routing;
    for (int s = 0; s < 2; ++s) routing.add_servers()->set_index(s);
    for (const uint32_t rows : {100, 150, 150}) {
      auto* variable = routing.add_variables();
      variable->set_dtype(muster::FLOAT32);
      variable->mutable_shape()->add_dims(rows);
      variable->mutable_shape()->add_dims(16);
    }
    *routing.mutable_variables(0)->mutable_optimizer() = first;
    MU_EXPECT_OK(PlaceAll(&routing));
    return routing.variables(2).placement(0);
  };
  EXPECT_EQ(placed({}), 0u) << "100 are fewer than 150";
  muster::OptimizerProto rowwise, adam;
  rowwise.mutable_rowwise_adagrad()->set_learning_rate(1);
  EXPECT_EQ(placed(rowwise), 0u) << "100 * 17 / 16 as well";
  adam.mutable_adam()->set_learning_rate(1);
  EXPECT_EQ(placed(adam), 1u) << "100 * 3 are more";
}

TEST(RoutingTest, RefusesWhatContradictsItself) {
  pb::RoutingProto good = Model(2);
  MU_ASSERT_OK(PlaceAll(&good));
  MU_EXPECT_OK(Routing::Create(good));
  const auto refused = [&](auto change) {
    pb::RoutingProto bad = good;
    change(&bad);
    EXPECT_THAT(Routing::Create(bad), HasCode(absl::StatusCode::kInvalidArgument));
  };
  refused([](auto* r) { r->mutable_variables(0)->set_placement(0, 9); });
  refused([](auto* r) { r->mutable_variables(0)->clear_placement(); });
  refused([](auto* r) { r->mutable_variables(1)->set_id(0); });
  refused([](auto* r) { r->mutable_variables(1)->set_name("v0"); });
  refused([](auto* r) { r->mutable_variables(0)->set_name(""); });
  refused([](auto* r) { r->mutable_variables(0)->set_dtype(muster::UINT8); });
  refused([](auto* r) { r->mutable_variables(0)->set_partition_starts(0, 1); });
  refused([](auto* r) { r->mutable_variables(0)->mutable_shape()->set_dims(0, -1); });
  refused([](auto* r) { r->mutable_tables(0)->set_rows(0); });
  refused([](auto* r) { r->mutable_tables(0)->set_dim(1 << 30); });
  refused([](auto* r) { r->mutable_tables(0)->set_partitions(63); });
  refused([](auto* r) { r->mutable_tables(1)->set_id(0); });
  refused([](auto* r) { r->mutable_servers(1)->set_index(0); });
  refused([](auto* r) {
    r->mutable_tables(0)->mutable_optimizer()->mutable_sgd()->set_learning_rate(1.0f / 0.0f);
  });
  refused([](auto* r) {
    r->mutable_tables(0)->mutable_optimizer()->mutable_adam()->set_learning_rate(-1);
  });
  refused([](auto* r) { r->mutable_variables(0)->mutable_optimizer()->mutable_ftrl(); });
}

}  // namespace
}  // namespace mu
