// Rules of reductions and scans.
#include "coordinator/autodiff/gradient_support.h"

namespace mu {
namespace {

Syms ReduceSumRule(const ForwardOp& op) { return {Spread(op, op.dy)}; }
Syms ReduceMeanRule(const ForwardOp& op) {
  return {Spread(op, Divide(op.dy, Count(op.inputs[0], IntsOf(op, "axes"))))};
}

// To those that are the largest (smallest), in equal shares.
Syms ExtremumRule(const ForwardOp& op) {
  const Sym& x = op.inputs[0];
  const Sym hit = Cast(Equal(x, Spread(op, op.output)), kFloat32);
  const Sym hits = ReduceSum(hit, IntsOf(op, "axes"), op.attrs.Bool("keep_dims"));
  return {Multiply(hit, Spread(op, Divide(op.dy, hits)))};
}

Syms ReduceProdRule(const ForwardOp& op) {
  return {Multiply(Spread(op, op.dy), ProductsOfOthers(op.inputs[0], IntsOf(op, "axes")))};
}

Syms CumsumRule(const ForwardOp& op) {
  return {Cumsum(op.dy, op.attrs.Int("axis"),
                 {.exclusive = op.attrs.Bool("exclusive"), .reverse = !op.attrs.Bool("reverse")})};
}

Syms SumOfSquaresRule(const ForwardOp& op) {
  const Sym twice = Multiply(op.dy, 2.0f);
  Syms gradients(op.inputs.size());
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.Wants(i)) gradients[i] = Multiply(op.inputs[i], twice);
  }
  return gradients;
}

}  // namespace

void RegisterReductionGradients(GradientTable& table) {
  table.AddRule("reduce_sum", ReduceSumRule);
  table.AddRule("reduce_mean", ReduceMeanRule);
  table.AddRule("reduce_max", ExtremumRule);
  table.AddRule("reduce_min", ExtremumRule);
  table.AddRule("reduce_prod", ReduceProdRule);
  table.AddRule("cumsum", CumsumRule);
  table.AddRule("sum_of_squares", SumOfSquaresRule);
  table.AddNone("products_of_others", "it is itself part of a gradient");
}

}  // namespace mu
