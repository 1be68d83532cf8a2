#include "coordinator/frontend/composed_ops.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/op_support.h"

namespace mu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// 0, 1, ..., n - 1 in the type of `like`.
Sym Iota(int64_t n, DType like, SourcePlace place) {
  Tensor numbers(like == kInt32 ? kInt32 : kInt64, {n < 0 ? 0 : n});
  for (int64_t i = 0; i < n; ++i) {
    if (like == kInt32) {
      numbers.data<int32_t>()[i] = static_cast<int32_t>(i);
    } else {
      numbers.data<int64_t>()[i] = i;
    }
  }
  return ConstantTensor(numbers, place.file, place.line);
}

Sym Fail(const char* call, const Sym& x, SourcePlace place, const std::string& message) {
  if (!x.status().ok()) return x;
  TraceGraph* graph = GraphOf({x});
  if (graph == nullptr) return TraceGraph::NoGraph(call, place);
  return graph->Fail(call, absl::InvalidArgumentError(message), place);
}

// x where the mask is true, else a number.
Sym Masked(const Operand& x, const Operand& mask, float otherwise) {
  return Where(At(mask.Bind(), x.place()), x, At(otherwise, x.place()));
}

}  // namespace

Sym Clip(const Operand& x, const Operand& low, const Operand& high) {
  return Minimum(At(Maximum(x, low), x.place()), high);
}

Sym Rsqrt(const Operand& x) { return Divide(At(1.0f, x.place()), At(Sqrt(x), x.place())); }
Sym Reciprocal(const Operand& x) { return Divide(At(1.0f, x.place()), x); }

// The smallest integer has no negative; -1 - x has each integer in the opposite order.
Sym Argmin(const Operand& x, int64_t axis) {
  const SourcePlace place = x.place();
  const Sym bound = x.Bind();
  const bool is_integer = bound.dtype() == kInt32 || bound.dtype() == kInt64;
  const Sym reversed =
      is_integer ? Subtract(At(-1, place), At(bound, place)) : Negate(At(bound, place));
  return Argmax(At(reversed, place), axis);
}

Sym OneHot(const Operand& ids, int64_t depth) {
  const SourcePlace place = ids.place();
  const Sym bound = ids.Bind(kInt64);
  if (depth <= 0) return Fail("one_hot", bound, place, absl::StrCat("depth is ", depth));
  const Sym wide = ExpandDims(At(bound, place), {-1});
  const Sym hit = Equal(At(wide, place), At(Iota(depth, bound.dtype(), place), place));
  return Cast(At(hit, place), kFloat32);
}

Sym Stack(const std::vector<Sym>& parts, int64_t axis, const char* file, int line) {
  std::vector<Sym> wide;
  for (const Sym& part : parts) wide.push_back(ExpandDims(Operand(part, file, line), {axis}));
  return Concat(wide, axis, file, line);
}

std::vector<Sym> SplitSizes(const Operand& x, int64_t axis, const std::vector<int64_t>& sizes) {
  const SourcePlace place = x.place();
  const Sym bound = x.Bind();
  const int rank = bound.shape().rank();
  const int64_t at = PositiveAxis(axis, rank);
  int64_t total = 0;
  for (const int64_t size : sizes) total += size;
  if (at < 0 || at >= rank || bound.shape()[static_cast<int>(at)] != total) {
    const Sym error = Fail("split", bound, place,
                           absl::StrCat("parts of ", total, " entries in all are not axis ", axis,
                                        " of ", bound.spec().ToString()));
    return std::vector<Sym>(sizes.size(), error);
  }
  std::vector<Sym> parts;
  std::vector<int64_t> begin(rank, 0), size(rank, -1);
  for (const int64_t part : sizes) {
    size[at] = part;
    parts.push_back(Slice(At(bound, place), begin, size));
    begin[at] += part;
  }
  return parts;
}

std::vector<Sym> Split(const Operand& x, int64_t axis, int count) {
  const Sym bound = x.Bind();
  const int64_t at = PositiveAxis(axis, bound.shape().rank());
  const int64_t size =
      at >= 0 && at < bound.shape().rank() ? bound.shape()[static_cast<int>(at)] : -1;
  if (count <= 0 || size < 0 || size % count != 0) {
    const Sym error = Fail("split", bound, x.place(),
                           absl::StrCat("axis ", axis, " of ", bound.spec().ToString(), " has no ",
                                        count, " equal parts"));
    return std::vector<Sym>(count > 0 ? count : 1, error);
  }
  return SplitSizes(At(bound, x.place()), axis, std::vector<int64_t>(count, size / count));
}

Sym BroadcastTo(const Operand& x, const Shape& shape) {
  const SourcePlace place = x.place();
  Sym bound = x.Bind();
  const int added = shape.rank() - bound.shape().rank();
  std::vector<int64_t> axes, multiples;
  bool fits = added >= 0;
  for (int i = 0; fits && i < shape.rank(); ++i) {
    if (i < added) axes.push_back(i);
    const int64_t dim = i < added ? 1 : bound.shape()[i - added];
    const bool same = shape[i] == dim || shape[i] == kUnknownDim;
    fits = same || (dim == 1 && shape[i] > 0);
    multiples.push_back(same ? 1 : shape[i]);
  }
  if (!fits) {
    return Fail(
        "broadcast_to", bound, place,
        absl::StrCat(bound.spec().ToString(), " cannot be broadcast to ", shape.ToString()));
  }
  if (!axes.empty()) bound = ExpandDims(At(bound, place), axes);
  return Tile(At(bound, place), multiples);
}

Sym SequenceMask(const Operand& lengths, int64_t max_length) {
  const SourcePlace place = lengths.place();
  const Sym bound = lengths.Bind(kInt64);
  if (max_length <= 0)
    return Fail("sequence_mask", bound, place, absl::StrCat("max_length is ", max_length));
  return Greater(At(ExpandDims(At(bound, place), {-1}), place),
                 At(Iota(max_length, bound.dtype(), place), place));
}

Sym MaskedSum(const Operand& x, const Operand& mask, const std::vector<int64_t>& axes,
              bool keep_dims) {
  return ReduceSum(At(Masked(x, mask, 0), x.place()), axes, keep_dims);
}

Sym MaskedMean(const Operand& x, const Operand& mask, const std::vector<int64_t>& axes,
               bool keep_dims) {
  const SourcePlace place = x.place();
  const Sym ones = OnesLike(x);
  const Sym count = MaskedSum(At(ones, place), mask, axes, keep_dims);
  return Divide(At(MaskedSum(x, mask, axes, keep_dims), place),
                At(Maximum(At(count, place), At(1.0f, place)), place));
}

Sym MaskedMax(const Operand& x, const Operand& mask, const std::vector<int64_t>& axes,
              bool keep_dims) {
  return ReduceMax(At(Masked(x, mask, -kInfinity), x.place()), axes, keep_dims);
}

Sym MaskedMin(const Operand& x, const Operand& mask, const std::vector<int64_t>& axes,
              bool keep_dims) {
  return ReduceMin(At(Masked(x, mask, kInfinity), x.place()), axes, keep_dims);
}

Sym HashCross(const std::vector<Sym>& ids, int64_t buckets, int64_t seed, const char* file,
              int line) {
  constexpr int64_t kMany = int64_t{1} << 62;
  const SourcePlace place{file, line};
  if (ids.empty()) return Fail("hash_cross", Sym(), place, "there are no ids to cross");
  Sym hash;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Sym id = ids[i].dtype() == kInt64 ? ids[i] : Cast(At(ids[i], place), kInt64);
    const Sym sum = i == 0 ? id : Add(At(hash, place), At(id, place));
    hash = HashBucket(At(sum, place), i + 1 == ids.size() ? buckets : kMany, seed);
  }
  return hash;
}

EmbeddedSequences EmbeddingSequence(const EmbeddingTable& table, const Operand& values,
                                    const Operand& splits, int64_t length, bool keep_last) {
  const SourcePlace place = values.place();
  const Sym ids = values.Bind(kInt64);
  const Operand ends = At(splits.Bind(kInt32), place);
  const Sym rows = EmbeddingLookup(table, At(ids, place));
  const Sym ones = OnesLike(At(ids, place));
  const Sym there = PadSequences(At(ones, place), ends, length, keep_last);
  return {PadSequences(At(rows, place), ends, length, keep_last),
          Greater(At(there, place), At(0, place))};
}

const std::vector<ComposedOp>& ComposedOps() {
  static const auto* const ops = new std::vector<ComposedOp>{
      {"Clip", "maximum, minimum",
       "x within [low, high], else the nearer bound. What is within gets the gradient."},
      {"Rsqrt", "sqrt, divide", "1 / sqrt(x)."},
      {"Reciprocal", "divide", "1 / x."},
      {"Argmin", "negate or subtract, argmax", "Where along an axis the smallest is."},
      {"OneHot", "expand_dims, equal, cast",
       "1 at the id's place of a new last axis, else 0; an id outside of it gives zeros."},
      {"Stack", "expand_dims, concat", "Tensors of one shape along a new axis."},
      {"Split, SplitSizes", "slice", "Parts along an axis of known size."},
      {"BroadcastTo", "expand_dims, tile", "x in a larger shape."},
      {"SequenceMask", "expand_dims, greater",
       "[batch, max_length]: true at the first lengths[b]."},
      {"MaskedSum, MaskedMean", "where, reduce_sum, maximum, divide",
       "Over the elements where the mask is true; 0 if there is none."},
      {"MaskedMax, MaskedMin", "where, reduce_max, reduce_min",
       "Over the elements where the mask is true; -infinity, infinity if there is none."},
      {"HashCross", "cast, hash_bucket, add", "A bucket for each combination of ids."},
      {"EmbeddingSequence", "embedding_lookup, pad_sequences, ones_like, greater",
       "Rows of ragged sequences of ids as [batch, length, dim], with a mask."},
  };
  return *ops;
}

}  // namespace mu
