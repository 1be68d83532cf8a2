#include "coordinator/frontend/op_support.h"
#include "coordinator/frontend/ops.h"

namespace mu {
namespace {

Sym Product(const char* op, const Operand& a, const Operand& b, MatMulOptions options) {
  return AddOp(
      op, {a.Bind(), b.Bind()},
      Attrs().Bool("transpose_a", options.transpose_a).Bool("transpose_b", options.transpose_b),
      a.place());
}

}  // namespace

Sym Add(const Operand& a, const Operand& b) { return Binary("add", a, b); }
Sym Subtract(const Operand& a, const Operand& b) { return Binary("subtract", a, b); }
Sym Multiply(const Operand& a, const Operand& b) { return Binary("multiply", a, b); }
Sym Divide(const Operand& a, const Operand& b) { return Binary("divide", a, b); }
Sym Maximum(const Operand& a, const Operand& b) { return Binary("maximum", a, b); }
Sym Minimum(const Operand& a, const Operand& b) { return Binary("minimum", a, b); }
Sym Pow(const Operand& a, const Operand& b) { return Binary("pow", a, b); }
Sym Negate(const Operand& x) { return Unary("negate", x); }
Sym Relu(const Operand& x) { return Unary("relu", x); }
Sym Sigmoid(const Operand& x) { return Unary("sigmoid", x); }
Sym Tanh(const Operand& x) { return Unary("tanh", x); }
Sym Log(const Operand& x) { return Unary("log", x); }
Sym Log1p(const Operand& x) { return Unary("log1p", x); }
Sym Exp(const Operand& x) { return Unary("exp", x); }
Sym Sqrt(const Operand& x) { return Unary("sqrt", x); }
Sym Square(const Operand& x) { return Unary("square", x); }
Sym Abs(const Operand& x) { return Unary("abs", x); }
Sym Sign(const Operand& x) { return Unary("sign", x); }
Sym Sin(const Operand& x) { return Unary("sin", x); }
Sym Cos(const Operand& x) { return Unary("cos", x); }
Sym Floor(const Operand& x) { return Unary("floor", x); }
Sym Ceil(const Operand& x) { return Unary("ceil", x); }
Sym Round(const Operand& x) { return Unary("round", x); }

Sym Cast(const Operand& x, DType dtype) {
  return AddOp("cast", {x.Bind()}, Attrs().Type("dtype", dtype), x.place());
}

Sym MatMul(const Operand& a, const Operand& b, MatMulOptions options) {
  return Product("matmul", a, b, options);
}

Sym BatchMatMul(const Operand& a, const Operand& b, MatMulOptions options) {
  return Product("batch_matmul", a, b, options);
}

Sym SigmoidCrossEntropy(const Operand& logits, const Operand& labels) {
  return AddOp("sigmoid_cross_entropy", {logits.Bind(), labels.Bind()}, {}, logits.place());
}

Sym MeanSquaredError(const Operand& predictions, const Operand& targets) {
  return AddOp("mean_squared_error", {predictions.Bind(), targets.Bind()}, {}, predictions.place());
}

Sym ReluGrad(const Operand& dy, const Operand& y) {
  return AddOp("relu_grad", {dy.Bind(), y.Bind()}, {}, dy.place());
}

Sym BroadcastLike(const Operand& x, const Operand& like, const std::vector<int64_t>& axes) {
  const Sym shape = like.Bind();
  return AddOp("broadcast_like", {x.Bind(), shape},
               Attrs().Ints("axes", PositiveAxes(axes, shape.shape().rank())), x.place());
}

Sym ReduceToLike(const Operand& x, const Operand& like) {
  return AddOp("reduce_to_like", {x.Bind(), like.Bind()}, {}, x.place());
}

}  // namespace mu
