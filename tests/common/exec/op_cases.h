// Random inputs and attributes for every op: shapes with sizes 0 and 1, all types, all ways of
// broadcasting.
#pragma once

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "tests/common/exec/dense.h"
#include "tests/testing/graph_maker.h"

namespace mu::testing {

struct OpCase {
  std::vector<Dense> inputs;
  GraphMaker::Attrs attrs;
};
using CaseMaker = OpCase (*)(SplitMix& random);

namespace cases {

// Mostly small, sometimes past a vector or a block of the kernels, sometimes 0 or 1.
inline int64_t Size(SplitMix& random) {
  constexpr int64_t kSizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33};
  return kSizes[random.Below(std::size(kSizes))];
}
inline int64_t Positive(SplitMix& random) { return std::max<int64_t>(Size(random), 1); }
inline Index RandomShape(SplitMix& random, int min_rank, int max_rank) {
  Index shape(min_rank + random.Below(max_rank - min_rank + 1));
  for (int64_t& dim : shape) dim = Size(random);
  return shape;
}
inline DType Numeric(SplitMix& random) {
  constexpr DType kTypes[] = {kFloat32, kInt32, kInt64};
  return kTypes[random.Below(3)];
}
inline DType Any(SplitMix& random) {
  constexpr DType kTypes[] = {kFloat32, kInt32, kInt64, kUInt8, kBool};
  return kTypes[random.Below(5)];
}
inline DType IndexType(SplitMix& random) { return random.Below(2) == 0 ? kInt32 : kInt64; }

// A shape that broadcasts to `shape`: leading axes dropped, others made 1.
inline Index Shrunk(SplitMix& random, const Index& shape) {
  const size_t drop = random.Below(3) == 0 ? random.Below(shape.size() + 1) : 0;
  Index shrunk(shape.begin() + drop, shape.end());
  const uint64_t how = random.Below(4);
  for (int64_t& dim : shrunk) {
    if (how == 0 || (how == 1 && random.Below(2) == 0)) dim = 1;
  }
  return shrunk;
}

inline OpCase BinaryOf(SplitMix& random, DType dtype) {
  const Index shape = RandomShape(random, 0, 4);
  Index a = shape, b = shape;
  const uint64_t which = random.Below(4);
  if (which & 1) a = Shrunk(random, shape);
  if (which & 2) b = Shrunk(random, shape);
  return {{RandomDense(random, dtype, a), RandomDense(random, dtype, b)}, {}};
}
inline OpCase BinaryNumeric(SplitMix& random) { return BinaryOf(random, Numeric(random)); }
inline OpCase BinaryAny(SplitMix& random) { return BinaryOf(random, Any(random)); }
inline OpCase Divide(SplitMix& random) {
  OpCase c = BinaryOf(random, kFloat32);
  for (double& value : c.inputs[1].values)
    value = static_cast<float>(value < 0 ? value - 0.5 : value + 0.5);
  return c;
}
inline OpCase SameShapes(SplitMix& random) {
  const Index shape = RandomShape(random, 0, 3);
  return {{RandomDense(random, kFloat32, shape), RandomDense(random, kFloat32, shape)}, {}};
}
inline OpCase UnaryNumeric(SplitMix& random) {
  return {{RandomDense(random, Numeric(random), RandomShape(random, 0, 3))}, {}};
}
inline OpCase UnaryFloat(SplitMix& random) {
  OpCase c = {{RandomDense(random, kFloat32, RandomShape(random, 0, 3))}, {}};
  if (random.Below(2) == 0) {
    for (double& value : c.inputs[0].values) value = static_cast<float>(value * 10);
  }
  return c;
}
inline OpCase UnaryPositive(SplitMix& random) {
  OpCase c = UnaryFloat(random);
  for (double& value : c.inputs[0].values) value = static_cast<float>(std::abs(value) + 1e-3);
  return c;
}
inline OpCase Cast(SplitMix& random) {
  OpCase c = {{RandomDense(random, Any(random), RandomShape(random, 0, 3))}, {}};
  c.attrs = {{"dtype", TypeAttr(Any(random))}};
  return c;
}

inline OpCase Product(SplitMix& random, bool batched, int64_t m, int64_t k, int64_t n) {
  const bool ta = random.Below(2) == 0, tb = random.Below(2) == 0;
  Index a = ta ? Index{k, m} : Index{m, k}, b = tb ? Index{n, k} : Index{k, n};
  if (batched) {
    const int64_t count = random.Below(4);
    a.insert(a.begin(), count);
    b.insert(b.begin(), count);
  }
  return {{RandomDense(random, kFloat32, a), RandomDense(random, kFloat32, b)},
          {{"transpose_a", BoolAttr(ta)}, {"transpose_b", BoolAttr(tb)}}};
}
inline OpCase Matmul(SplitMix& random) {
  return Product(random, false, Size(random), Size(random), Size(random));
}
inline OpCase BatchMatmul(SplitMix& random) {
  // One in eight is past what the path for small products takes.
  if (random.Below(8) == 0) return Product(random, true, 70, 61, 66);
  return Product(random, true, Size(random), Size(random), Size(random));
}

inline std::vector<int64_t> SomeAxes(SplitMix& random, size_t rank) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) {
    if (random.Below(2) == 0) axes.push_back(i);
  }
  return axes;
}
inline OpCase ReduceOf(SplitMix& random, DType dtype) {
  const Index shape = RandomShape(random, 0, 4);
  return {{RandomDense(random, dtype, shape)},
          {{"axes", IntsAttr(SomeAxes(random, shape.size()))},
           {"keep_dims", BoolAttr(random.Below(2) == 0)}}};
}
inline OpCase ReduceSum(SplitMix& random) { return ReduceOf(random, Numeric(random)); }
inline OpCase ReduceMean(SplitMix& random) { return ReduceOf(random, kFloat32); }
inline OpCase Count(SplitMix& random) {
  OpCase c = ReduceOf(random, Any(random));
  c.attrs.back() = {"at_least_one", BoolAttr(random.Below(2) == 0)};
  return c;
}

inline OpCase Concat(SplitMix& random) {
  const Index shape = RandomShape(random, 1, 3);
  const size_t axis = random.Below(shape.size());
  const DType dtype = Any(random);
  OpCase c;
  for (uint64_t i = 0; i < 1 + random.Below(4); ++i) {
    Index piece = shape;
    piece[axis] = Size(random);
    c.inputs.push_back(RandomDense(random, dtype, piece));
  }
  c.attrs = {{"axis", IntAttr(axis)}};
  return c;
}
inline OpCase ConcatPiece(SplitMix& random) {
  OpCase c = Concat(random);
  const size_t axis = c.attrs[0].second.i();
  Index whole = c.inputs[0].shape;
  whole[axis] = 0;
  for (const Dense& piece : c.inputs) whole[axis] += piece.shape[axis];
  c.attrs.push_back({"index", IntAttr(random.Below(c.inputs.size()))});
  c.inputs.insert(c.inputs.begin(), RandomDense(random, c.inputs[0].dtype, whole));
  return c;
}
inline OpCase SliceOf(SplitMix& random, DType dtype) {
  const Index shape = RandomShape(random, 0, 4);
  std::vector<int64_t> begin, size;
  for (const int64_t dim : shape) {
    begin.push_back(random.Below(dim + 1));
    size.push_back(random.Below(dim - begin.back() + 1));
    if (random.Below(2) == 0) begin.back() = 0, size.back() = dim;
    if (random.Below(4) == 0) size.back() = -1;
  }
  return {{RandomDense(random, dtype, shape)},
          {{"begin", IntsAttr(begin)}, {"size", IntsAttr(size)}}};
}
inline OpCase Slice(SplitMix& random) { return SliceOf(random, Any(random)); }
inline OpCase SliceGrad(SplitMix& random) {
  OpCase c = SliceOf(random, kFloat32);
  Index shape = c.inputs[0].shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t size = c.attrs[1].second.ints().value(i);
    shape[i] = size >= 0 ? size : shape[i] - c.attrs[0].second.ints().value(i);
  }
  c.attrs.pop_back();
  c.inputs.insert(c.inputs.begin(), RandomDense(random, kFloat32, shape));
  return c;
}

// Another shape of as many elements: neighbouring axes joined or axes of 1 put in.
inline Index Reshaped(SplitMix& random, const Index& shape) {
  Index result;
  for (const int64_t dim : shape) {
    if (!result.empty() && random.Below(2) == 0) {
      result.back() *= dim;
    } else {
      if (random.Below(4) == 0) result.push_back(1);
      result.push_back(dim);
    }
  }
  return result;
}
inline OpCase Reshape(SplitMix& random) {
  const Index shape = RandomShape(random, 0, 4);
  const Dense x = RandomDense(random, Any(random), shape);
  Index to = Reshaped(random, shape);
  if (!to.empty() && x.elements() > 0 && random.Below(2) == 0) to[random.Below(to.size())] = -1;
  return {{x}, {{"shape", ShapeAttr(Shape(to))}}};
}
inline OpCase ReshapeLike(SplitMix& random) {
  const Index shape = RandomShape(random, 0, 4);
  return {{RandomDense(random, Any(random), shape),
           RandomDense(random, Any(random), Reshaped(random, shape))},
          {}};
}
inline OpCase Transpose(SplitMix& random) {
  const Index shape = RandomShape(random, 0, 4);
  std::vector<int64_t> perm(shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = 1; i < perm.size(); ++i) std::swap(perm[i], perm[random.Below(i + 1)]);
  return {{RandomDense(random, Any(random), shape)}, {{"perm", IntsAttr(perm)}}};
}

inline OpCase GatherOf(SplitMix& random, DType dtype) {
  Index shape = RandomShape(random, 1, 3);
  const size_t axis = random.Below(shape.size());
  shape[axis] = Positive(random);
  Dense indices = Dense::Zeros(IndexType(random), RandomShape(random, 0, 2));
  for (double& index : indices.values) index = static_cast<double>(random.Below(shape[axis]));
  if (random.Below(2) == 0) {  // each index once, as in the interaction of DLRM
    indices.shape = {shape[axis]};
    indices.values.resize(shape[axis]);
    std::iota(indices.values.begin(), indices.values.end(), 0);
    for (size_t i = 1; i < indices.values.size(); ++i)
      std::swap(indices.values[i], indices.values[random.Below(i + 1)]);
    indices.shape[0] = 1 + random.Below(shape[axis]);
    indices.values.resize(indices.shape[0]);
  }
  return {{RandomDense(random, dtype, shape), indices}, {{"axis", IntAttr(axis)}}};
}
inline OpCase Gather(SplitMix& random) { return GatherOf(random, Any(random)); }
inline OpCase GatherGrad(SplitMix& random) {
  OpCase c = GatherOf(random, kFloat32);
  const size_t axis = c.attrs[0].second.i();
  const Index& params = c.inputs[0].shape;
  Index shape(params.begin(), params.begin() + axis);
  shape.insert(shape.end(), c.inputs[1].shape.begin(), c.inputs[1].shape.end());
  shape.insert(shape.end(), params.begin() + axis + 1, params.end());
  return {{RandomDense(random, kFloat32, shape), c.inputs[1], c.inputs[0]}, c.attrs};
}

inline OpCase BroadcastLike(SplitMix& random) {
  const Index like = RandomShape(random, 0, 4);
  OpCase c;
  if (random.Below(2) == 0) {
    c.inputs = {RandomDense(random, Any(random), Shrunk(random, like)),
                RandomDense(random, Any(random), like)};
    return c;
  }
  const std::vector<int64_t> axes = SomeAxes(random, like.size());
  Index shape;
  for (size_t i = 0; i < like.size(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) shape.push_back(like[i]);
  }
  if (axes.empty()) shape = like;
  c.inputs = {RandomDense(random, Any(random), shape), RandomDense(random, Any(random), like)};
  c.attrs = {{"axes", IntsAttr(axes)}};
  return c;
}
inline OpCase ReduceToLike(SplitMix& random) {
  const Index shape = RandomShape(random, 0, 4);
  return {{RandomDense(random, Numeric(random), shape),
           RandomDense(random, Any(random), Shrunk(random, shape))},
          {}};
}

inline OpCase Unique(SplitMix& random) {
  OpCase c;
  for (uint64_t i = 0; i < 1 + random.Below(3); ++i) {
    c.inputs.push_back(RandomDense(random, IndexType(random), RandomShape(random, 0, 2)));
  }
  return c;
}

struct BagsCase {
  Dense positions, splits, weights;
};
inline BagsCase RandomBags(SplitMix& random, int64_t bags, int64_t rows) {
  BagsCase c;
  c.splits = Dense::Zeros(kInt32, {bags + 1});
  for (int64_t b = 0; b < bags; ++b) {
    c.splits.values[b + 1] = c.splits.values[b] + static_cast<double>(random.Below(4));
  }
  c.positions = Dense::Zeros(kInt32, {static_cast<int64_t>(c.splits.values[bags])});
  for (double& position : c.positions.values) position = static_cast<double>(random.Below(rows));
  c.weights = RandomDense(random, kFloat32, c.positions.shape);
  for (double& weight : c.weights.values) weight = static_cast<float>(std::abs(weight) + 0.25);
  for (int64_t b = 0; b < bags; ++b) {  // some bags weigh nothing
    if (random.Below(5) != 0) continue;
    for (auto i = static_cast<int64_t>(c.splits.values[b]); i < c.splits.values[b + 1]; ++i)
      c.weights.values[i] = 0;
  }
  return c;
}
inline GraphMaker::Attrs Combiner(SplitMix& random) {
  constexpr const char* kCombiners[] = {"sum", "mean", "sqrtn"};
  return {{"combiner", StringAttr(kCombiners[random.Below(3)])}};
}
inline OpCase SegmentCombine(SplitMix& random) {
  const Dense rows = RandomDense(random, kFloat32, {Positive(random), Positive(random)});
  const BagsCase bags = RandomBags(random, Size(random), rows.shape[0]);
  OpCase c = {{rows, bags.positions, bags.splits}, Combiner(random)};
  if (random.Below(2) == 0) c.inputs.push_back(bags.weights);
  return c;
}
inline OpCase SegmentCombineGrad(SplitMix& random) {
  const Dense like = RandomDense(random, kFloat32, {Positive(random), Positive(random)});
  const BagsCase bags = RandomBags(random, Size(random), like.shape[0]);
  const Dense dy = RandomDense(random, kFloat32, {bags.splits.shape[0] - 1, like.shape[1]});
  OpCase c = {{dy, bags.positions, bags.splits, like}, Combiner(random)};
  if (random.Below(2) == 0) c.inputs.push_back(bags.weights);
  return c;
}

inline OpCase Random(SplitMix& random, std::vector<Dense> inputs, GraphMaker::Attrs attrs) {
  attrs.push_back({"seed", IntAttr(static_cast<int64_t>(random.Next()))});
  attrs.push_back({"index", IntAttr(static_cast<int64_t>(random.Below(5)))});
  return {std::move(inputs), std::move(attrs)};
}
inline OpCase Dropout(SplitMix& random) {
  constexpr float kRates[] = {0, 0.25f, 0.5f, 0.9f};
  return Random(random, {RandomDense(random, kFloat32, RandomShape(random, 0, 3))},
                {{"rate", FloatAttr(kRates[random.Below(4)])}});
}
inline OpCase RandomUniform(SplitMix& random) {
  const float low = static_cast<float>(4 * random.Unit() - 2);
  return Random(random, {RandomDense(random, Any(random), RandomShape(random, 0, 3))},
                {{"low", FloatAttr(low)},
                 {"high", FloatAttr(low + static_cast<float>(random.Unit()) + 0.1f)}});
}

}  // namespace cases

inline const std::map<std::string, CaseMaker>& CaseMakers() {
  static const auto* const makers = new std::map<std::string, CaseMaker>{
      {"add", cases::BinaryNumeric},
      {"subtract", cases::BinaryNumeric},
      {"multiply", cases::BinaryNumeric},
      {"divide", cases::Divide},
      {"maximum", cases::BinaryNumeric},
      {"minimum", cases::BinaryNumeric},
      {"relu_grad", cases::SameShapes},
      {"sigmoid_cross_entropy", cases::SameShapes},
      {"negate", cases::UnaryNumeric},
      {"relu", cases::UnaryFloat},
      {"sigmoid", cases::UnaryFloat},
      {"tanh", cases::UnaryFloat},
      {"log", cases::UnaryPositive},
      {"log1p", cases::UnaryPositive},
      {"exp", cases::UnaryFloat},
      {"sqrt", cases::UnaryPositive},
      {"square", cases::UnaryFloat},
      {"zeros_like", cases::UnaryNumeric},
      {"ones_like", cases::UnaryNumeric},
      {"cast", cases::Cast},
      {"matmul", cases::Matmul},
      {"reduce_sum", cases::ReduceSum},
      {"reduce_mean", cases::ReduceMean},
      {"mean_squared_error", cases::SameShapes},
      {"count", cases::Count},
      {"concat", cases::Concat},
      {"slice", cases::Slice},
      {"reshape", cases::Reshape},
      {"transpose", cases::Transpose},
      {"gather", cases::Gather},
      {"broadcast_like", cases::BroadcastLike},
      {"reduce_to_like", cases::ReduceToLike},
      {"reshape_like", cases::ReshapeLike},
      {"slice_grad", cases::SliceGrad},
      {"concat_piece", cases::ConcatPiece},
      {"gather_grad", cases::GatherGrad},
      {"dropout", cases::Dropout},
      {"random_uniform", cases::RandomUniform},
      {"unique", cases::Unique},
      {"segment_combine", cases::SegmentCombine},
      {"segment_combine_grad", cases::SegmentCombineGrad},
  };
  return *makers;
}

}  // namespace mu::testing
