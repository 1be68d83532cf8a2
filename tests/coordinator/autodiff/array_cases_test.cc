#include "tests/coordinator/autodiff/check_cases.h"

namespace mu {
namespace {

using Vars = std::vector<Variable>;

Sym Indices(Shape shape, const std::vector<int32_t>& values) {
  return ConstantTensor(Tensor::Of<int32_t>(std::move(shape), values));
}

void AddMoves(std::vector<CheckCase>& cases) {
  cases.push_back(
      {"concat", "axis0", {{{2, 3}}, {{1, 3}}, {{3, 3}}}, [](const Vars& v, const BatchRef&) {
         return Concat({Read(v[0]), Read(v[1]), Read(v[2])}, 0);
       }});
  cases.push_back({"concat", "axis1", {{{2, 3}}, {{2, 1}}}, [](const Vars& v, const BatchRef&) {
                     return Concat({Read(v[0]), Read(v[1]), Read(v[0])}, -1);
                   }});
  cases.push_back(
      {"concat", "batch", {{{13}}, {{2, 13}}}, [](const Vars& v, const BatchRef& batch) {
         return Concat({batch["dense"] * v[0], Read(v[1]), batch["dense"]}, 0);
       }});
  cases.push_back({"slice", "middle", {{{4, 5}}}, [](const Vars& v, const BatchRef&) {
                     return Slice(v[0], {1, 2}, {2, -1});
                   }});
  cases.push_back({"slice", "batch", {{{13}}}, [](const Vars& v, const BatchRef& batch) {
                     return Slice(batch["dense"] * v[0], {1, 3}, {-1, 4});
                   }});
  cases.push_back({"reshape", "plain", {{{2, 6}}}, [](const Vars& v, const BatchRef&) {
                     return Reshape(v[0], {3, -1});
                   }});
  cases.push_back({"reshape", "batch", {{{13}}}, [](const Vars& v, const BatchRef& batch) {
                     return Reshape(batch["dense"] * v[0], {13, -1});
                   }});
  cases.push_back({"transpose", "three", {{{2, 3, 4}}}, [](const Vars& v, const BatchRef&) {
                     return Multiply(Transpose(v[0], {2, 0, 1}), Reshape(v[0], {4, 2, 3}));
                   }});
  cases.push_back({"gather", "axis0", {{{4, 2}}}, [](const Vars& v, const BatchRef&) {
                     return Gather(v[0], Indices({2, 3}, {0, 3, 3, 1, 0, 3}));
                   }});
  cases.push_back({"gather", "axis1", {{{2, 4, 3}}}, [](const Vars& v, const BatchRef&) {
                     return Gather(v[0], Indices({3}, {2, 0, 2}), 1);
                   }});
  cases.push_back({"gather", "batch", {{{7, 2}}}, [](const Vars& v, const BatchRef& batch) {
                     return Gather(v[0], Slice(batch["ids"], {0, 0}, {-1, 2}));
                   }});
}

void AddLikes(std::vector<CheckCase>& cases) {
  cases.push_back(
      {"broadcast_like", "numpy", {{{3, 1}}, {{2, 3, 4}}}, [](const Vars& v, const BatchRef&) {
         return Multiply(BroadcastLike(v[0], v[1]), v[1]);
       }});
  cases.push_back(
      {"broadcast_like", "axes", {{{3}}, {{2, 3, 4}}}, [](const Vars& v, const BatchRef&) {
         return Multiply(BroadcastLike(v[0], v[1], {0, 2}), v[1]);
       }});
  cases.push_back(
      {"reduce_to_like", "both", {{{2, 3, 4}}, {{3, 1}}}, [](const Vars& v, const BatchRef&) {
         return Multiply(ReduceToLike(v[0], v[1]), v[1]);
       }});
  cases.push_back({"reduce_to_like", "batch", {{{13}}}, [](const Vars& v, const BatchRef& batch) {
                     return ReduceToLike(batch["dense"] * v[0], batch["dense"]);
                   }});
  cases.push_back({"reshape_like", "plain", {{{6}}, {{2, 3}}}, [](const Vars& v, const BatchRef&) {
                     return Multiply(ReshapeLike(v[0], v[1]), v[1]);
                   }});
  cases.push_back(
      {"gather_grad", "axis0", {{{3, 2}}, {{4, 2}}}, [](const Vars& v, const BatchRef&) {
         return GatherGrad(v[0], Indices({3}, {2, 0, 2}), v[1], 0);
       }});
}

}  // namespace

std::vector<CheckCase> ArrayCheckCases() {
  std::vector<CheckCase> cases;
  AddMoves(cases);
  AddLikes(cases);
  return cases;
}

}  // namespace mu
