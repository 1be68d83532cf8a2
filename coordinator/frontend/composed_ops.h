// Calls that are made of several ops. They have no kernel and no gradient rule of their own.
#pragma once

#include <string>
#include <vector>

#include "coordinator/frontend/ops.h"

namespace mu {

// x where it is within [low, high], else the nearer bound. Only what is within gets a gradient.
Sym Clip(const Operand& x, const Operand& low, const Operand& high);
Sym Rsqrt(const Operand& x);       // 1 / sqrt(x)
Sym Reciprocal(const Operand& x);  // 1 / x
Sym Argmin(const Operand& x, int64_t axis);
// ids (int32, int64) [...] -> float32 [..., depth]; a row of zeros for an id outside of [0, depth).
Sym OneHot(const Operand& ids, int64_t depth);
// Tensors of one shape along a new axis of the result.
Sym Stack(const std::vector<Sym>& parts, int64_t axis, const char* file = __builtin_FILE(),
          int line = __builtin_LINE());
// `count` equal parts, or parts of those sizes, along an axis whose size is known. An error is in
// every part.
std::vector<Sym> Split(const Operand& x, int64_t axis, int count);
std::vector<Sym> SplitSizes(const Operand& x, int64_t axis, const std::vector<int64_t>& sizes);
// x in a larger shape, as numpy broadcasts. A size of -1 keeps x's, which may be unknown.
Sym BroadcastTo(const Operand& x, const Shape& shape);

// lengths (int32, int64) [batch] -> bool [batch, max_length]: true at the first lengths[b].
Sym SequenceMask(const Operand& lengths, int64_t max_length);
// Reductions over the elements of x where the mask, which is broadcast to x, is true. Of nothing: 0
// (MaskedSum, MaskedMean), -infinity (MaskedMax), infinity (MaskedMin). float32.
Sym MaskedSum(const Operand& x, const Operand& mask, const std::vector<int64_t>& axes = {},
              bool keep_dims = false);
Sym MaskedMean(const Operand& x, const Operand& mask, const std::vector<int64_t>& axes = {},
               bool keep_dims = false);
Sym MaskedMax(const Operand& x, const Operand& mask, const std::vector<int64_t>& axes = {},
              bool keep_dims = false);
Sym MaskedMin(const Operand& x, const Operand& mask, const std::vector<int64_t>& axes = {},
              bool keep_dims = false);

// A bucket in [0, buckets) for each combination of ids, which are broadcast together.
Sym HashCross(const std::vector<Sym>& ids, int64_t buckets, int64_t seed = 0,
              const char* file = __builtin_FILE(), int line = __builtin_LINE());

// Rows of a table for ragged sequences of ids: values [n], splits [batch + 1].
struct EmbeddedSequences {
  Sym rows;  // float32 [batch, length, dim]; zeros behind a sequence's end
  Sym mask;  // bool [batch, length]
};
EmbeddedSequences EmbeddingSequence(const EmbeddingTable& table, const Operand& values,
                                    const Operand& splits, int64_t length, bool keep_last = false);

// The list of the reference.
struct ComposedOp {
  std::string call;
  std::string made_of;
  std::string doc;
};
const std::vector<ComposedOp>& ComposedOps();

}  // namespace mu
