// Rules of elementwise ops, products and losses.
#include "coordinator/autodiff/gradient_support.h"

namespace mu {
namespace {

Syms AddRule(const ForwardOp& op) {
  return {op.Wants(0) ? Unbroadcast(op.dy, op.inputs[0]) : Sym(),
          op.Wants(1) ? Unbroadcast(op.dy, op.inputs[1]) : Sym()};
}

Syms SubtractRule(const ForwardOp& op) {
  return {op.Wants(0) ? Unbroadcast(op.dy, op.inputs[0]) : Sym(),
          op.Wants(1) ? Unbroadcast(Negate(op.dy), op.inputs[1]) : Sym()};
}

Syms MultiplyRule(const ForwardOp& op) {
  const Sym& a = op.inputs[0];
  const Sym& b = op.inputs[1];
  return {op.Wants(0) ? Unbroadcast(Multiply(op.dy, b), a) : Sym(),
          op.Wants(1) ? Unbroadcast(Multiply(op.dy, a), b) : Sym()};
}

// d(a / b) = da / b - (a / b) db / b
Syms DivideRule(const ForwardOp& op) {
  const Sym& a = op.inputs[0];
  const Sym& b = op.inputs[1];
  return {op.Wants(0) ? Unbroadcast(Divide(op.dy, b), a) : Sym(),
          op.Wants(1) ? Unbroadcast(Negate(Divide(Multiply(op.dy, op.output), b)), b) : Sym()};
}

// The gradient goes to the side that was taken; to the first where they are equal.
Syms SelectRule(const ForwardOp& op, const Sym& second_taken) {
  const Sym mask = Cast(second_taken, kFloat32);
  return {op.Wants(0) ? Unbroadcast(Multiply(op.dy, Subtract(1.0f, mask)), op.inputs[0]) : Sym(),
          op.Wants(1) ? Unbroadcast(Multiply(op.dy, mask), op.inputs[1]) : Sym()};
}

Syms MaximumRule(const ForwardOp& op) {
  return SelectRule(op, Greater(op.inputs[1], op.inputs[0]));
}
Syms MinimumRule(const ForwardOp& op) {
  return SelectRule(op, Greater(op.inputs[0], op.inputs[1]));
}

Syms NegateRule(const ForwardOp& op) { return {Negate(op.dy)}; }
Syms ReluRule(const ForwardOp& op) { return {ReluGrad(op.dy, op.output)}; }
Syms SigmoidRule(const ForwardOp& op) {
  return {Multiply(op.dy, Multiply(op.output, Subtract(1.0f, op.output)))};
}
Syms TanhRule(const ForwardOp& op) { return {Multiply(op.dy, Subtract(1.0f, Square(op.output)))}; }
Syms LogRule(const ForwardOp& op) { return {Divide(op.dy, op.inputs[0])}; }
Syms Log1pRule(const ForwardOp& op) { return {Divide(op.dy, Add(op.inputs[0], 1.0f))}; }
Syms ExpRule(const ForwardOp& op) { return {Multiply(op.dy, op.output)}; }
Syms SqrtRule(const ForwardOp& op) { return {Divide(Multiply(op.dy, 0.5f), op.output)}; }
Syms SquareRule(const ForwardOp& op) { return {Multiply(op.dy, Multiply(op.inputs[0], 2.0f))}; }

Syms AbsRule(const ForwardOp& op) { return {Multiply(op.dy, Sign(op.inputs[0]))}; }
Syms SinRule(const ForwardOp& op) { return {Multiply(op.dy, Cos(op.inputs[0]))}; }
Syms CosRule(const ForwardOp& op) { return {Negate(Multiply(op.dy, Sin(op.inputs[0])))}; }

// d(a^b) = b a^(b - 1) da + a^b log(a) db. a^0 is 1 for every a, also where a^(b - 1) is infinite.
Syms PowRule(const ForwardOp& op) {
  const Sym& a = op.inputs[0];
  const Sym& b = op.inputs[1];
  Syms gradients(2);
  if (op.Wants(0)) {
    const Sym slope = Where(Equal(b, 0.0f), 0.0f, Multiply(b, Pow(a, Subtract(b, 1.0f))));
    gradients[0] = Unbroadcast(Multiply(op.dy, slope), a);
  }
  if (op.Wants(1)) {
    const Sym log = Log(Where(Greater(a, 0.0f), a, 1.0f));  // 0 where the logarithm does not exist
    gradients[1] = Unbroadcast(Multiply(op.dy, Multiply(op.output, log)), b);
  }
  return gradients;
}

Syms WhereRule(const ForwardOp& op) {
  const Sym& condition = op.inputs[0];
  return {Sym(), op.Wants(1) ? Unbroadcast(Where(condition, op.dy, 0.0f), op.inputs[1]) : Sym(),
          op.Wants(2) ? Unbroadcast(Where(condition, 0.0f, op.dy), op.inputs[2]) : Sym()};
}

// Wanted of floats only, so this is from float32 to float32.
Syms CastRule(const ForwardOp& op) { return {op.dy}; }

Syms ProductRule(const ForwardOp& op,
                 Sym (*product)(const Operand&, const Operand&, MatMulOptions)) {
  const bool ta = op.attrs.Bool("transpose_a");
  const bool tb = op.attrs.Bool("transpose_b");
  const Sym& a = op.inputs[0];
  const Sym& b = op.inputs[1];
  Syms gradients(2);
  if (op.Wants(0)) {
    gradients[0] = ta ? product(b, op.dy, {.transpose_a = tb, .transpose_b = true})
                      : product(op.dy, b, {.transpose_b = !tb});
  }
  if (op.Wants(1)) {
    gradients[1] = tb ? product(op.dy, a, {.transpose_a = true, .transpose_b = ta})
                      : product(a, op.dy, {.transpose_a = !ta});
  }
  return gradients;
}

Syms MatMulRule(const ForwardOp& op) { return ProductRule(op, MatMul); }

// x [..., m, width] as [all rows, width].
Sym AllRows(const Sym& x, int64_t width) { return Reshape(x, {-1, width}); }

// One matrix that all of a's rows are multiplied by gets its gradient from one product, not from
// one for each of a's matrices.
bool IsOneMatrix(const ForwardOp& op) {
  return op.inputs[1].shape().rank() == 2 && op.inputs[0].shape().rank() > 2 &&
         !op.attrs.Bool("transpose_a") && op.inputs[1].shape().IsFullyKnown();
}

Syms BatchMatMulRule(const ForwardOp& op) {
  ForwardOp rest = op;
  Sym matrix;
  if (op.Wants(1) && IsOneMatrix(op)) {
    const bool tb = op.attrs.Bool("transpose_b");
    const Shape& b = op.inputs[1].shape();
    const Sym a = AllRows(op.inputs[0], b[tb ? 1 : 0]);
    const Sym dy = AllRows(op.dy, b[tb ? 0 : 1]);
    matrix = tb ? MatMul(dy, a, {.transpose_a = true}) : MatMul(a, dy, {.transpose_a = true});
    rest.wanted[1] = false;
  }
  Syms gradients = ProductRule(rest, BatchMatMul);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (rest.Wants(i)) gradients[i] = Unbroadcast(gradients[i], op.inputs[i]);
  }
  if (matrix.graph() != nullptr) gradients[1] = matrix;
  return gradients;
}

// d/dx = sigmoid(x) - z, d/dz = -x
Syms SigmoidCrossEntropyRule(const ForwardOp& op) {
  const Sym& logits = op.inputs[0];
  const Sym& labels = op.inputs[1];
  return {op.Wants(0) ? Multiply(op.dy, Subtract(Sigmoid(logits), labels)) : Sym(),
          op.Wants(1) ? Negate(Multiply(op.dy, logits)) : Sym()};
}

Syms MeanSquaredErrorRule(const ForwardOp& op) {
  const Sym& predictions = op.inputs[0];
  const Sym scale = Divide(Multiply(op.dy, 2.0f), Count(predictions));
  const Sym gradient = Multiply(Subtract(predictions, op.inputs[1]), scale);
  return {op.Wants(0) ? gradient : Sym(), op.Wants(1) ? Negate(gradient) : Sym()};
}

// What was dropped gets no gradient, what was kept one scaled alike.
Syms DropoutRule(const ForwardOp& op) {
  return {DropoutAgain(op.dy, op.attrs.Float("rate"), op.attrs.Int("seed"), op.attrs.Int("index"))};
}

Syms ReluGradRule(const ForwardOp& op) {
  return {op.Wants(0) ? ReluGrad(op.dy, op.inputs[1]) : Sym(), Sym()};
}

}  // namespace

void RegisterMathGradients(GradientTable& table) {
  table.AddRule("add", AddRule);
  table.AddRule("subtract", SubtractRule);
  table.AddRule("multiply", MultiplyRule);
  table.AddRule("divide", DivideRule);
  table.AddRule("maximum", MaximumRule);
  table.AddRule("minimum", MinimumRule);
  table.AddRule("negate", NegateRule);
  table.AddRule("relu", ReluRule);
  table.AddRule("sigmoid", SigmoidRule);
  table.AddRule("tanh", TanhRule);
  table.AddRule("log", LogRule);
  table.AddRule("log1p", Log1pRule);
  table.AddRule("exp", ExpRule);
  table.AddRule("sqrt", SqrtRule);
  table.AddRule("square", SquareRule);
  table.AddRule("abs", AbsRule);
  table.AddRule("sin", SinRule);
  table.AddRule("cos", CosRule);
  table.AddRule("pow", PowRule);
  table.AddRule("where", WhereRule);
  table.AddRule("cast", CastRule);
  table.AddRule("matmul", MatMulRule);
  table.AddRule("batch_matmul", BatchMatMulRule);
  table.AddRule("sigmoid_cross_entropy", SigmoidCrossEntropyRule);
  table.AddRule("mean_squared_error", MeanSquaredErrorRule);
  table.AddRule("relu_grad", ReluGradRule);
  table.AddRule("dropout", DropoutRule);
}

}  // namespace mu
