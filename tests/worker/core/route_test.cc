#include "worker/core/route.h"

#include "common/base/status.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

WorkerRouting Routing(uint64_t version, uint64_t generation, uint64_t incarnation = 1) {
  return {.version = version,
          .generation = Generation(generation),
          .servers = {{0, "a:1", incarnation}, {1, "b:1", 7}}};
}

TEST(WorkerRouteTest, OnlyANewerRoutingIsNews) {
  WorkerRoute route;
  EXPECT_TRUE(route.IsNews(Routing(0, 0))) << "the first";
  route.Take(Routing(5, 1));
  EXPECT_FALSE(route.IsNews(Routing(4, 1)));
  EXPECT_FALSE(route.IsNews(Routing(5, 1)));
  EXPECT_TRUE(route.IsNews(Routing(6, 1)));
}

TEST(WorkerRouteTest, ServersThatMoveAreAnotherVersion) {
  WorkerRoute route;
  route.Take(Routing(1, 1));
  const uint64_t first = route.servers_version();
  route.Take(Routing(2, 2));
  EXPECT_EQ(route.servers_version(), first) << "the same servers";
  route.Take(Routing(3, 2, /*incarnation=*/2));
  const uint64_t moved = route.servers_version();
  EXPECT_NE(moved, first);
  route.Clear();
  EXPECT_NE(route.servers_version(), moved);
  EXPECT_FALSE(route.configured());
}

TEST(WorkerRouteTest, TheGenerationMustBeTheRoutings) {
  WorkerRoute route;
  MU_EXPECT_OK(route.CheckGeneration(Generation()));
  EXPECT_EQ(KindOf(route.CheckGeneration(Generation(1))), pb::ERROR_NOT_INSTALLED);
  route.Take(Routing(1, 5));
  MU_EXPECT_OK(route.CheckGeneration(Generation(5)));
  MU_EXPECT_OK(route.CheckGeneration(Generation())) << "not said";
  EXPECT_EQ(KindOf(route.CheckGeneration(Generation(4))), pb::ERROR_STALE);
  EXPECT_EQ(KindOf(route.CheckGeneration(Generation(6))), pb::ERROR_NOT_INSTALLED);
}

}  // namespace
}  // namespace mu
