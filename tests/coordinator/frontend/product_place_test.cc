// Where a product is computed if any place will do: by the servers where that moves fewer bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "coordinator/frontend/builder.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/frontend/variable_ops.h"
#include "coordinator/passes/trace.h"
#include "tests/testing/fake_factory.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

// What a function does with the product, and with a variable that has nothing to do with it.
using Use = std::function<void(FunctionBuilder&, const Sym& y, const Variable& other)>;

void Returns(FunctionBuilder& f, const Sym& y, const Variable&) { f.Return("y", y); }

// Of 5 rows with a variable of one partition.
bool OnServers(const Shape& shape, const ShardedMatMulOptions& options, const Use& use = Returns) {
  testing::FakeFactory factory;
  const Variable variable = *factory.CreateVariable({.name = "classes", .shape = shape});
  const Variable other = *factory.CreateVariable({.name = "other", .shape = {3}});
  Tensor x(kFloat32, Shape({5, shape[1]}));
  std::fill_n(x.data<float>(), x.elements(), 0.5f);
  const auto function = Trace("f", [&](FunctionBuilder& f) {
    use(f, ShardedMatMul(ConstantTensor(x), variable, options), other);
  });
  EXPECT_THAT(function, testing::IsOk());
  if (!function.ok()) return false;
  return std::any_of(function->nodes().begin(), function->nodes().end(),
                     [](const pb::NodeProto& node) { return node.op() == "sharded_matmul"; });
}

TEST(VariableOps, TheServersAreChosenWhereFewerBytesMove) {
  // A softmax over 200,000 classes: 64 partitions.
  EXPECT_TRUE(MovesLessFromServers(32, 200'000, 256, 64, /*trains=*/true));
  EXPECT_TRUE(MovesLessFromServers(150, 200'000, 256, 64, true));
  EXPECT_FALSE(MovesLessFromServers(160, 200'000, 256, 64, true));
  EXPECT_FALSE(MovesLessFromServers(32, 10, 16, 1, true));
  // Small batches and wide variables pay.
  EXPECT_TRUE(MovesLessFromServers(1, 1000, 64, 1, true));
  EXPECT_FALSE(MovesLessFromServers(64, 1000, 64, 1, true));
  // What only reads moves x and the products once: n * k against batch * (n + k * partitions).
  EXPECT_TRUE(MovesLessFromServers(160, 200'000, 256, 64, /*trains=*/false));
  EXPECT_TRUE(MovesLessFromServers(236, 200'000, 256, 64, false));
  EXPECT_FALSE(MovesLessFromServers(237, 200'000, 256, 64, false));
  const ProductBytes reads = BytesOfProduct(2, 100, 10, 3, /*trains=*/false);
  EXPECT_EQ(reads.read, 4 * 100 * 10);
  EXPECT_EQ(reads.from_servers, 4 * 2 * (100 + 10 * 3));
  const ProductBytes trains = BytesOfProduct(2, 100, 10, 3, /*trains=*/true);
  EXPECT_EQ(trains.read, 2 * reads.read);
  EXPECT_EQ(trains.from_servers, 3 * reads.from_servers);
  // batch * (5 + 3) against 5 * 3
  for (const auto& [batch, expected] : std::vector<std::pair<int64_t, bool>>{{1, true}, {4, false}})
    EXPECT_EQ(OnServers(Shape({5, 3}), {.batch = batch}), expected) << batch;
}

// A batch for which servers pay if the function only reads: 5 * (20 + 10) against 20 * 10, in
// training three times and twice as much. Nobody calls Train() here, as in most functions.
TEST(VariableOps, AFunctionThatTrainsAndOneThatReadsChooseForThemselves) {
  const auto trains = [](FunctionBuilder& f, const Sym& y, const Variable&) {
    f.Minimize(ReduceMean(Square(y)));
    f.Return("y", y);
  };
  const auto trains_another = [](FunctionBuilder& f, const Sym& y, const Variable& other) {
    f.Minimize(ReduceMean(Square(other)));
    f.Return("y", y);
  };
  const Shape shape({20, 10});
  EXPECT_TRUE(OnServers(shape, {}));
  EXPECT_FALSE(OnServers(shape, {}, trains));
  EXPECT_TRUE(OnServers(shape, {}, trains_another)) << "no gradient goes through it";
  EXPECT_TRUE(OnServers(shape, {.place = ProductPlace::kServers}, trains)) << "the user says so";
  EXPECT_FALSE(OnServers(shape, {.place = ProductPlace::kWorker})) << "the user says so";
}

}  // namespace
}  // namespace mu
