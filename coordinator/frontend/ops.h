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
Sym Greater(const Operand& a, const Operand& b);  // bool
Sym Equal(const Operand& a, const Operand& b);    // bool
Sym Negate(const Operand& x);
Sym Relu(const Operand& x);
Sym Sigmoid(const Operand& x);
Sym Tanh(const Operand& x);
Sym Log(const Operand& x);
Sym Exp(const Operand& x);
Sym Sqrt(const Operand& x);
Sym Square(const Operand& x);
Sym Cast(const Operand& x, DType dtype);

inline Sym operator+(const Operand& a, const Operand& b) { return Add(a, b); }
inline Sym operator-(const Operand& a, const Operand& b) { return Subtract(a, b); }
inline Sym operator*(const Operand& a, const Operand& b) { return Multiply(a, b); }
inline Sym operator/(const Operand& a, const Operand& b) { return Divide(a, b); }
inline Sym operator>(const Operand& a, const Operand& b) { return Greater(a, b); }
inline Sym operator<(const Operand& a, const Operand& b) { return Greater(b, a); }
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
Sym DropoutAgain(const Operand& dy, float rate, int64_t seed, int64_t index);

// Parameters.
Sym Read(const Variable& variable, const char* file = __builtin_FILE(),
         int line = __builtin_LINE());
// Adds delta, of the variable's type and shape (or a number, for a scalar), when the step's updates
// are pushed.
void AssignAdd(const Variable& variable, const Operand& delta);
// ids of any shape: a row for each, dim last.
Sym EmbeddingLookup(const EmbeddingTable& table, const Operand& ids);

enum class Combiner { kSum, kMean };
// Bag b is the rows of values[splits[b] : splits[b + 1]], combined: [batch, dim]. An empty bag
// gives zeros.
Sym EmbeddingBag(const EmbeddingTable& table, const Operand& values, const Operand& splits,
                 Combiner combiner = Combiner::kSum);
// weights float32, one per value; they get no gradient. kMean divides by the sum of the bag's
// weights.
Sym EmbeddingBag(const EmbeddingTable& table, const Operand& values, const Operand& splits,
                 const Operand& weights, Combiner combiner);

}  // namespace mu
