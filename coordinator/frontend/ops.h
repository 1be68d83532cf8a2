// The ops of users' programs; docs/reference/ops.md says precisely what each computes.
//
// Axes may be negative (from the end). A Sym's error sticks to what is made of it; see sym.h. Where
// no Operand carries the caller's line, the last two parameters do: leave them alone.
#pragma once

#include <vector>

#include "common/tensor/tensor.h"
#include "coordinator/frontend/handles.h"
#include "coordinator/frontend/sym.h"

namespace mu {

// Elementwise, broadcasting as numpy.
Sym Add(const Operand& a, const Operand& b);
Sym Subtract(const Operand& a, const Operand& b);
Sym Multiply(const Operand& a, const Operand& b);
Sym Divide(const Operand& a, const Operand& b);  // float32
Sym Maximum(const Operand& a, const Operand& b);
Sym Minimum(const Operand& a, const Operand& b);
Sym Pow(const Operand& a, const Operand& b);  // float32
Sym Negate(const Operand& x);
Sym Relu(const Operand& x);
Sym Sigmoid(const Operand& x);
Sym Tanh(const Operand& x);
Sym Log(const Operand& x);
Sym Log1p(const Operand& x);  // log(1 + x), exact also near 0
Sym Exp(const Operand& x);
Sym Sqrt(const Operand& x);
Sym Square(const Operand& x);
Sym Abs(const Operand& x);
Sym Sign(const Operand& x);
Sym Sin(const Operand& x);
Sym Cos(const Operand& x);
Sym Floor(const Operand& x);
Sym Ceil(const Operand& x);
Sym Round(const Operand& x);  // to the even one of two
Sym Cast(const Operand& x, DType dtype);

// Comparisons: bool, broadcasting as numpy.
Sym Greater(const Operand& a, const Operand& b);
Sym GreaterEqual(const Operand& a, const Operand& b);
Sym Less(const Operand& a, const Operand& b);
Sym LessEqual(const Operand& a, const Operand& b);
Sym Equal(const Operand& a, const Operand& b);
Sym NotEqual(const Operand& a, const Operand& b);
Sym LogicalAnd(const Operand& a, const Operand& b);
Sym LogicalOr(const Operand& a, const Operand& b);
Sym LogicalNot(const Operand& x);
// a where the condition is true, else b; all three are broadcast.
Sym Where(const Operand& condition, const Operand& a, const Operand& b);

// Arithmetic of ids, for crosses and buckets: int32, int64.
Sym FloorDivide(const Operand& a, const Operand& b);
Sym Modulo(const Operand& a, const Operand& b);  // has the sign of b
// int64 in [0, buckets); the same on every machine.
Sym HashBucket(const Operand& ids, int64_t buckets, int64_t seed = 0);

inline Sym operator+(const Operand& a, const Operand& b) { return Add(a, b); }
inline Sym operator-(const Operand& a, const Operand& b) { return Subtract(a, b); }
inline Sym operator*(const Operand& a, const Operand& b) { return Multiply(a, b); }
inline Sym operator/(const Operand& a, const Operand& b) { return Divide(a, b); }
inline Sym operator>(const Operand& a, const Operand& b) { return Greater(a, b); }
inline Sym operator<(const Operand& a, const Operand& b) { return Greater(b, a); }
inline Sym operator>=(const Operand& a, const Operand& b) { return GreaterEqual(a, b); }
inline Sym operator<=(const Operand& a, const Operand& b) { return GreaterEqual(b, a); }
inline Sym operator-(const Operand& x) { return Negate(x); }

// Products.
struct MatMulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};
Sym MatMul(const Operand& a, const Operand& b, MatMulOptions options = {});  // [m, k] x [k, n]
Sym BatchMatMul(const Operand& a, const Operand& b,
                MatMulOptions options = {});  // [b, m, k] x [b, k, n]

// Sums. No axes: all of them.
Sym ReduceSum(const Operand& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Sym ReduceMean(const Operand& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
// Several that are the largest (smallest) share the gradient.
Sym ReduceMax(const Operand& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Sym ReduceMin(const Operand& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Sym ReduceProd(const Operand& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Sym ReduceAny(const Operand& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Sym ReduceAll(const Operand& x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Sym Argmax(const Operand& x, int64_t axis);  // int64, without the axis
struct CumsumOptions {
  bool exclusive = false;  // without the element itself
  bool reverse = false;    // from the end
};
Sym Cumsum(const Operand& x, int64_t axis, CumsumOptions options = {});
// Of all elements of all of them, as a scalar.
Sym SumOfSquares(const std::vector<Sym>& values, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE());
// The number of elements (along axes), as a float32 scalar.
Sym Count(const Operand& x, const std::vector<int64_t>& axes = {});

// Losses.
Sym SigmoidCrossEntropy(const Operand& logits, const Operand& labels);     // elementwise, stable
Sym MeanSquaredError(const Operand& predictions, const Operand& targets);  // scalar

// Moving data.
Sym Concat(const std::vector<Sym>& parts, int64_t axis, const char* file = __builtin_FILE(),
           int line = __builtin_LINE());
// One entry per axis; size -1: to the end.
Sym Slice(const Operand& x, const std::vector<int64_t>& begin, const std::vector<int64_t>& size);
Sym Reshape(const Operand& x, const Shape& shape);  // one size may be -1
Sym Transpose(const Operand& x, const std::vector<int64_t>& perm);
Sym Gather(const Operand& params, const Operand& indices, int64_t axis = 0);
// An axis of size 1 at each of axes, which are positions in the result.
Sym ExpandDims(const Operand& x, const std::vector<int64_t>& axes);
Sym Squeeze(const Operand& x, const std::vector<int64_t>& axes);  // axes of size 1
Sym Tile(const Operand& x, const std::vector<int64_t>& multiples);
// before[i] and after[i] entries of value around axis i.
Sym Pad(const Operand& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
        float value = 0);
Sym StopGradient(const Operand& x);
// Sequence b, values[splits[b] : splits[b + 1]], as row b of [batch, length, ...], zeros behind it.
// Of a longer one the first (keep_last: the last) values are kept.
Sym PadSequences(const Operand& values, const Operand& splits, int64_t length,
                 bool keep_last = false);
Sym ZerosLike(const Operand& x);
Sym OnesLike(const Operand& x);
Sym ConstantTensor(const Tensor& value, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE());

// Random numbers: the same whenever and wherever a step is run.
// In a function that trains (FunctionBuilder::Train) 0 with probability rate, else x / (1 - rate);
// in others x.
Sym Dropout(const Operand& x, float rate);
// float32 in [low, high), in like's shape; in every function.
Sym RandomUniform(const Operand& like, float low = 0, float high = 1);

// What gradients are made of.
Sym ReluGrad(const Operand& dy, const Operand& y);
Sym BroadcastLike(const Operand& x, const Operand& like, const std::vector<int64_t>& axes = {});
Sym ReduceToLike(const Operand& x, const Operand& like);
Sym ReshapeLike(const Operand& x, const Operand& like);
Sym SliceGrad(const Operand& dy, const Operand& like, const std::vector<int64_t>& begin);
Sym ConcatPiece(const Operand& dy, const std::vector<Sym>& parts, int64_t axis, int64_t index);
Sym GatherGrad(const Operand& dy, const Operand& indices, const Operand& like, int64_t axis);
Sym ProductsOfOthers(const Operand& x, const std::vector<int64_t>& axes);
Sym TileGrad(const Operand& dy, const Operand& like, const std::vector<int64_t>& multiples);
Sym Unpad(const Operand& dy, const Operand& like, const std::vector<int64_t>& before);
Sym PadSequencesGrad(const Operand& dy, const Operand& splits, const Operand& like, int64_t length,
                     bool keep_last);
Sym DropoutAgain(const Operand& dy, float rate, int64_t seed, int64_t index);

// Parameters.
Sym Read(const Variable& variable, const char* file = __builtin_FILE(),
         int line = __builtin_LINE());
// Adds delta, of the variable's type and shape (or a number, for a scalar), when the step's updates
// are pushed. One with a moving_part moves that part of the way towards delta (deltas: their mean).
void AssignAdd(const Variable& variable, const Operand& delta);
// The variable gets this value, of its type and shape (or a number, for a scalar), when the step's
// updates are pushed; the optimizer's slots keep what they hold (FTRL's go with the value). Of
// several in one function the last one counts. In a synchronous round floats are averaged by
// records, and of whole numbers the last of the data counts.
void Assign(const Variable& variable, const Operand& value);
// ids of any shape: a row for each, dim last.
Sym EmbeddingLookup(const EmbeddingTable& table, const Operand& ids);

enum class Combiner { kSum, kMean, kSqrtN };
// Bag b is the rows of values[splits[b] : splits[b + 1]], combined: [batch, dim]. An empty bag
// gives zeros.
Sym EmbeddingBag(const EmbeddingTable& table, const Operand& values, const Operand& splits,
                 Combiner combiner = Combiner::kSum);
// weights float32, one per value; they get no gradient. kMean divides by the sum of the bag's
// weights, kSqrtN by the root of the sum of their squares (without weights: of the bag's size).
Sym EmbeddingBag(const EmbeddingTable& table, const Operand& values, const Operand& splits,
                 const Operand& weights, Combiner combiner);

}  // namespace mu
