// A step of a size that was seen before allocates nothing but what it returns. Counts operator new
// of the whole program.
#include <atomic>
#include <cstdlib>
#include <new>

#include "common/exec/executor.h"
#include "tests/testing/fake_parameters.h"
#include "tests/testing/graph_maker.h"
#include "tests/testing/matchers.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// Not inlined: GCC would see one of malloc and free meet an operator and warn.
__attribute__((noinline)) void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace mu {
namespace {

using ::mu::testing::FakeParameterAccess;
using ::mu::testing::GraphMaker;
using Ref = GraphMaker::Ref;

TEST(AllocationTest, AStepInTheSteadyStateAllocatesNothing) {
  FakeParameterAccess access(0.01f);
  Tensor weights(kFloat32, {8, 8});
  std::fill_n(weights.data<float>(), 64, 0.1f);
  const uint32_t w = access.AddVariable("w", weights);
  GraphMaker g;
  const Ref unique = g.Op("unique", {g.Column("ids", kInt64, {-1})});
  const Ref x = g.Column("x", kFloat32, {-1, 8});
  const Ref read = g.Read("w", w, kFloat32, {8, 8});
  const Ref y = g.Op("relu", {g.Op("add", {g.Op("matmul", {x, read}), x})});
  const Ref picked = g.Op("gather", {y, unique.Output(1)});
  const Ref dy = g.Op("gather_grad", {g.Op("tanh", {picked}), unique.Output(1), y});
  const Ref dw = g.Op("matmul", {x, dy}, {{"transpose_a", testing::BoolAttr(true)}});
  g.Update("apply_gradient", "w", w, kFloat32, {8, 8},
           g.Op("add", {dw, g.Op("reduce_to_like", {dw, read})}));
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(g.function(), access.routing()));
  Executor executor(compiled);
  std::vector<Tensor> returns;
  std::vector<Batch> batches;
  for (const int64_t rows : {40, 7, 40}) {
    Tensor ids(kInt64, {rows}), values(kFloat32, {rows, 8});
    for (int64_t i = 0; i < rows; ++i) ids.data<int64_t>()[i] = 3 * i % 11;
    std::fill_n(values.data<float>(), 8 * rows, 0.5f);
    Batch batch;
    batch.names = {"x", "ids"};
    batch.columns = {values, ids};
    batches.push_back(batch);
  }
  for (int round = 0; round < 2; ++round) {
    const int64_t before = allocations.load();
    bool ok = true;
    for (const Batch& batch : batches)
      ok &= executor.RunStep({.batch = &batch}, access, &returns).ok();
    const int64_t after = allocations.load();
    EXPECT_TRUE(ok);
    if (round > 0) {
      EXPECT_EQ(after, before);
    }
  }
}

}  // namespace
}  // namespace mu
