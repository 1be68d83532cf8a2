// Cases of comparisons, reductions, layout and sequences.
#include "tests/coordinator/autodiff/check_cases.h"

namespace mu {
namespace {

using Vars = std::vector<Variable>;

void Add(std::vector<CheckCase>& cases, const std::string& op, const std::string& name,
         std::vector<CheckInput> variables,
         std::function<Sym(const Vars&, const BatchRef&)> build) {
  cases.push_back({op, name, std::move(variables), std::move(build)});
}

void AddElementwise(std::vector<CheckCase>& cases) {
  const std::vector<float> away = {-1.5f, -0.4f, 0.3f, 1.2f};  // from 0 and from each other
  Add(cases, "abs", "mixed", {{{4}, 0, 0, away}},
      [](const Vars& v, const BatchRef&) { return Abs(v[0]); });
  Add(cases, "sin", "plain", {{{2, 3}, -3, 3}},
      [](const Vars& v, const BatchRef&) { return Sin(v[0]); });
  Add(cases, "cos", "plain", {{{2, 3}, -3, 3}},
      [](const Vars& v, const BatchRef&) { return Cos(v[0]); });
  Add(cases, "pow", "positive", {{{2, 3}, 0.5f, 2}, {{3}, -2, 2}},
      [](const Vars& v, const BatchRef&) { return Pow(v[0], v[1]); });
  // Where the base is not positive only it gets a gradient; x^0 has none at 0 either.
  Add(cases, "pow", "powers", {{{5}, 0, 0, {-1.5f, -0.5f, 0, 0.5f, 0}}},
      [](const Vars& v, const BatchRef&) {
        return Pow(v[0], ConstantTensor(Tensor::Of<float>({5}, {2, 3, 2, 1.5f, 0})));
      });
  Add(cases, "where", "both", {{{3}}, {{4, 1}}}, [](const Vars& v, const BatchRef&) {
    const Sym condition = ConstantTensor(Tensor::Of<bool>({3}, {true, false, true}));
    return Where(condition, v[0], v[1]);
  });
  Add(cases, "where", "batch", {{{13}}, {{1}}}, [](const Vars& v, const BatchRef& batch) {
    return Where(batch["dense"] > 0.0f, Multiply(batch["dense"], v[0]), v[1]);
  });
  Add(cases, "stop_gradient", "half", {{{3}}}, [](const Vars& v, const BatchRef&) {
    // Finite differences see through it, so the value that is held must not vary: its slope is 0.
    return Multiply(v[0], StopGradient(Sign(v[0])));
  });
}

void AddReductions(std::vector<CheckCase>& cases) {
  const std::vector<float> apart = {-1.5f, 0.3f, 1.2f, 0.9f, -0.4f, 0.6f};
  for (const bool keep : {false, true}) {
    const std::string kept = keep ? "_kept" : "";
    Add(cases, "reduce_max", "all" + kept, {{{2, 3}, 0, 0, apart}},
        [keep](const Vars& v, const BatchRef&) { return ReduceMax(v[0], {}, keep); });
    Add(cases, "reduce_max", "axis" + kept, {{{2, 3}, 0, 0, apart}},
        [keep](const Vars& v, const BatchRef&) { return ReduceMax(v[0], {1}, keep); });
    Add(cases, "reduce_min", "axis" + kept, {{{2, 3}, 0, 0, apart}},
        [keep](const Vars& v, const BatchRef&) { return ReduceMin(v[0], {0}, keep); });
    Add(cases, "reduce_prod", "axis" + kept, {{{2, 3}, 0, 0, apart}},
        [keep](const Vars& v, const BatchRef&) { return ReduceProd(v[0], {1}, keep); });
  }
  Add(cases, "reduce_prod", "zeros", {{{3, 3}, 0, 0, {1, 0, 2, 0, 0, 3, 1.5f, 2, -1}}},
      [](const Vars& v, const BatchRef&) { return ReduceProd(v[0], {1}); });
  Add(cases, "reduce_max", "batch", {{{13}}}, [](const Vars& v, const BatchRef& batch) {
    return ReduceMax(Multiply(batch["dense"], v[0]), {1});
  });
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      const std::string name =
          std::string(exclusive ? "exclusive" : "whole") + (reverse ? "_reverse" : "");
      for (const int64_t axis : {0, 1, 2}) {
        Add(cases, "cumsum", name + std::to_string(axis), {{{2, 3, 2}}},
            [=](const Vars& v, const BatchRef&) {
              return Cumsum(v[0], axis, {.exclusive = exclusive, .reverse = reverse});
            });
      }
    }
  }
  Add(cases, "sum_of_squares", "two", {{{2, 3}, -0.5f, 0.5f}, {{4}, -0.5f, 0.5f}},
      [](const Vars& v, const BatchRef&) {
        return SumOfSquares({Operand(v[0]).Bind(), Operand(v[1]).Bind()});
      });
}

void AddLayout(std::vector<CheckCase>& cases) {
  Add(cases, "expand_dims", "ends", {{{2, 3}}}, [](const Vars& v, const BatchRef&) {
    return ExpandDims(v[0], {0, -1});
  });
  Add(cases, "squeeze", "middle", {{{2, 1, 3}}},
      [](const Vars& v, const BatchRef&) { return Squeeze(v[0], {1}); });
  Add(cases, "expand_dims", "batch", {{{13}}}, [](const Vars& v, const BatchRef& batch) {
    return Squeeze(ExpandDims(Multiply(batch["dense"], v[0]), {1}), {1});
  });
  Add(cases, "tile", "matrix", {{{2, 3}}}, [](const Vars& v, const BatchRef&) {
    return Tile(v[0], {3, 2});
  });
  Add(cases, "tile_grad", "matrix", {{{6, 6}}}, [](const Vars& v, const BatchRef&) {
    return TileGrad(v[0], ConstantTensor(Tensor(kFloat32, {2, 3})), {3, 2});
  });
  Add(cases, "pad", "matrix", {{{2, 3}}}, [](const Vars& v, const BatchRef&) {
    return Pad(v[0], {1, 0}, {0, 2}, 0.5f);
  });
  Add(cases, "unpad", "matrix", {{{3, 5}}}, [](const Vars& v, const BatchRef&) {
    return Unpad(v[0], ConstantTensor(Tensor(kFloat32, {2, 3})), {1, 0});
  });
  for (const bool keep_last : {false, true}) {
    const std::string name = keep_last ? "last" : "first";
    Add(cases, "pad_sequences", name, {{{6, 2}}}, [keep_last](const Vars& v, const BatchRef&) {
      const Sym splits = ConstantTensor(Tensor::Of<int32_t>({5}, {0, 3, 3, 4, 6}));
      return PadSequences(v[0], splits, 2, keep_last);
    });
    Add(cases, "pad_sequences_grad", name, {{{4, 2, 2}}},
        [keep_last](const Vars& v, const BatchRef&) {
          const Sym splits = ConstantTensor(Tensor::Of<int32_t>({5}, {0, 3, 3, 4, 6}));
          return PadSequencesGrad(v[0], splits, ConstantTensor(Tensor(kFloat32, {6, 2})), 2,
                                  keep_last);
        });
  }
}

// Calls that are made of several ops; the op is the last of them.
void AddComposed(std::vector<CheckCase>& cases) {
  const std::vector<float> values = {-1.5f, 0.3f, 1.2f, 0.9f, -0.4f, 0.6f};
  Add(cases, "minimum", "Clip", {{{6}, 0, 0, values}},
      [](const Vars& v, const BatchRef&) { return Clip(v[0], -0.5f, 1.0f); });
  Add(cases, "divide", "Rsqrt", {{{4}, 0.5f, 2}},
      [](const Vars& v, const BatchRef&) { return Rsqrt(v[0]); });
  Add(cases, "divide", "Reciprocal", {{{4}, 0.5f, 2}},
      [](const Vars& v, const BatchRef&) { return Reciprocal(v[0]); });
  Add(cases, "concat", "Stack", {{{2, 3}}, {{2, 3}}}, [](const Vars& v, const BatchRef&) {
    return Stack({Operand(v[0]).Bind(), Operand(v[1]).Bind()}, 1);
  });
  Add(cases, "slice", "Split", {{{2, 6}}}, [](const Vars& v, const BatchRef&) {
    const std::vector<Sym> parts = Split(v[0], -1, 3);
    return Multiply(parts[0], Multiply(parts[1], parts[2]));
  });
  Add(cases, "tile", "BroadcastTo", {{{3, 1}}}, [](const Vars& v, const BatchRef&) {
    return BroadcastTo(v[0], {2, 3, 4});
  });
  const auto mask = [] {
    return ConstantTensor(Tensor::Of<bool>({2, 3}, {true, false, true, false, false, false}));
  };
  Add(cases, "reduce_sum", "MaskedSum", {{{2, 3}}},
      [mask](const Vars& v, const BatchRef&) { return MaskedSum(v[0], mask(), {1}); });
  Add(cases, "divide", "MaskedMean", {{{2, 3}}},
      [mask](const Vars& v, const BatchRef&) { return MaskedMean(v[0], mask(), {1}, true); });
  const auto some = [] {
    return ConstantTensor(Tensor::Of<bool>({2, 3}, {true, false, true, false, true, false}));
  };
  Add(cases, "reduce_max", "MaskedMax", {{{2, 3}, 0, 0, values}},
      [some](const Vars& v, const BatchRef&) { return MaskedMax(v[0], some(), {1}); });
  Add(cases, "reduce_min", "MaskedMin", {{{2, 3}, 0, 0, values}},
      [some](const Vars& v, const BatchRef&) { return MaskedMin(v[0], some(), {1}); });
}

}  // namespace

std::vector<CheckCase> GeneralCheckCases() {
  std::vector<CheckCase> cases;
  AddElementwise(cases);
  AddReductions(cases);
  AddLayout(cases);
  AddComposed(cases);
  return cases;
}

}  // namespace mu
