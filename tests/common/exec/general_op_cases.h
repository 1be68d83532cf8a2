// Random inputs for the ops beyond those of op_cases.h: comparisons, arithmetic of ids, other
// reductions, layout, sequences.
#pragma once

#include "tests/common/exec/op_cases.h"

namespace mu::testing {
namespace cases {

// Values among which equal ones are frequent.
inline Dense Few(SplitMix& random, DType dtype, const Index& shape) {
  Dense dense = Dense::Zeros(dtype, shape);
  for (double& value : dense.values) value = static_cast<double>(random.Below(5)) - 2;
  return dense;
}
inline OpCase Order(SplitMix& random) {
  OpCase c = BinaryNumeric(random);
  if (random.Below(2) == 0) {
    for (Dense& input : c.inputs) input = Few(random, input.dtype, input.shape);
  }
  return c;
}
inline OpCase Logical(SplitMix& random) { return BinaryOf(random, kBool); }
inline OpCase Not(SplitMix& random) {
  return {{RandomDense(random, kBool, RandomShape(random, 0, 3))}, {}};
}
inline OpCase Where(SplitMix& random) {
  const Index shape = RandomShape(random, 0, 4);
  const DType dtype = Any(random);
  const auto some = [&] { return random.Below(2) == 0 ? shape : Shrunk(random, shape); };
  return {{RandomDense(random, kBool, some()), RandomDense(random, dtype, some()),
           RandomDense(random, dtype, some())},
          {}};
}
inline OpCase Pow(SplitMix& random) {
  OpCase c = BinaryOf(random, kFloat32);
  for (double& value : c.inputs[0].values) value = static_cast<float>(std::abs(value) + 0.1);
  return c;
}
inline OpCase IntegerDivision(SplitMix& random) {
  OpCase c = BinaryOf(random, IndexType(random));
  for (double& value : c.inputs[1].values) value = value == 0 ? -1 : value;
  return c;
}
inline OpCase HashBucket(SplitMix& random) {
  return {{RandomDense(random, IndexType(random), RandomShape(random, 0, 3))},
          {{"buckets", IntAttr(static_cast<int64_t>(1 + random.Below(1000)))},
           {"seed", IntAttr(static_cast<int64_t>(random.Below(3)))}}};
}

inline OpCase Extremum(SplitMix& random) { return ReduceOf(random, Numeric(random)); }
inline OpCase Product(SplitMix& random) {
  OpCase c = ReduceOf(random, Numeric(random));
  const bool real = c.inputs[0].dtype == kFloat32;
  for (double& value : c.inputs[0].values) {  // of many factors: most of them are 1
    const float factor = random.Below(2) == 0 ? 1.125f : 0.875f;
    value = random.Below(128) != 0 ? 1 : real ? factor : -1;
    if (random.Below(2000) == 0) value = 0;
  }
  return c;
}
inline OpCase Bools(SplitMix& random) {
  OpCase c = ReduceOf(random, kBool);
  const uint64_t often = 1 + random.Below(8);
  for (double& value : c.inputs[0].values) value = random.Below(often) == 0 ? 1 : 0;
  return c;
}
inline OpCase Argmax(SplitMix& random) {
  Index shape = RandomShape(random, 1, 3);
  const size_t axis = random.Below(shape.size());
  shape[axis] = Positive(random);
  const DType dtype = Numeric(random);
  return {{random.Below(2) == 0 ? Few(random, dtype, shape) : RandomDense(random, dtype, shape)},
          {{"axis", IntAttr(static_cast<int64_t>(axis))}}};
}
inline OpCase Cumsum(SplitMix& random) {
  const Index shape = RandomShape(random, 1, 3);
  return {{RandomDense(random, Numeric(random), shape)},
          {{"axis", IntAttr(static_cast<int64_t>(random.Below(shape.size())))},
           {"exclusive", BoolAttr(random.Below(2) == 0)},
           {"reverse", BoolAttr(random.Below(2) == 0)}}};
}
inline OpCase ProductsOfOthers(SplitMix& random) {
  OpCase c = Product(random);
  c.inputs[0].dtype = kFloat32;
  c.attrs.pop_back();
  return c;
}
inline OpCase SumOfSquares(SplitMix& random) {
  OpCase c;
  for (uint64_t i = 0; i < 1 + random.Below(3); ++i)
    c.inputs.push_back(RandomDense(random, kFloat32, RandomShape(random, 0, 3)));
  c.attrs.push_back({"root", BoolAttr(random.Below(2) == 0)});
  return c;
}

inline OpCase ExpandDims(SplitMix& random) {
  const Index shape = RandomShape(random, 0, 3);
  std::vector<int64_t> axes = {static_cast<int64_t>(random.Below(shape.size() + 1))};
  if (random.Below(2) == 0) axes.push_back(static_cast<int64_t>(shape.size()) + 1);
  return {{RandomDense(random, Any(random), shape)}, {{"axes", IntsAttr(axes)}}};
}
inline OpCase Squeeze(SplitMix& random) {
  Index shape = RandomShape(random, 1, 4);
  const size_t axis = random.Below(shape.size());
  shape[axis] = 1;
  return {{RandomDense(random, Any(random), shape)},
          {{"axes", IntsAttr({static_cast<int64_t>(axis)})}}};
}
inline std::vector<int64_t> Small(SplitMix& random, size_t rank, int64_t from) {
  std::vector<int64_t> values(rank);
  for (int64_t& value : values) value = from + static_cast<int64_t>(random.Below(3));
  return values;
}
inline OpCase Tile(SplitMix& random) {
  const Index shape = RandomShape(random, 0, 3);
  return {{RandomDense(random, Any(random), shape)},
          {{"multiples", IntsAttr(Small(random, shape.size(), 1))}}};
}
inline OpCase TileGrad(SplitMix& random) {
  OpCase c = Tile(random);
  Index shape = c.inputs[0].shape;
  for (size_t i = 0; i < shape.size(); ++i) shape[i] *= c.attrs[0].second.ints().value(i);
  c.inputs.insert(c.inputs.begin(), RandomDense(random, kFloat32, shape));
  return c;
}
inline OpCase Pad(SplitMix& random) {
  const Index shape = RandomShape(random, 0, 3);
  return {{RandomDense(random, Numeric(random), shape)},
          {{"before", IntsAttr(Small(random, shape.size(), 0))},
           {"after", IntsAttr(Small(random, shape.size(), 0))},
           {"value", FloatAttr(static_cast<float>(random.Below(3)) - 1)}}};
}
inline OpCase Unpad(SplitMix& random) {
  OpCase c = Pad(random);
  Index shape = c.inputs[0].shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    shape[i] += c.attrs[0].second.ints().value(i) + c.attrs[1].second.ints().value(i);
  }
  c.inputs.insert(c.inputs.begin(), RandomDense(random, Any(random), shape));
  c.attrs.resize(1);
  return c;
}
inline OpCase AnyType(SplitMix& random) {
  return {{RandomDense(random, Any(random), RandomShape(random, 0, 3))}, {}};
}

inline OpCase PadSequencesOf(SplitMix& random, DType dtype) {
  const BagsCase bags = RandomBags(random, Size(random), 3);
  Index shape = RandomShape(random, 0, 2);
  shape.insert(shape.begin(), bags.positions.shape[0]);
  return {{RandomDense(random, dtype, shape), bags.splits},
          {{"length", IntAttr(static_cast<int64_t>(1 + random.Below(4)))},
           {"keep_last", BoolAttr(random.Below(2) == 0)}}};
}
inline OpCase PadSequences(SplitMix& random) { return PadSequencesOf(random, Any(random)); }
inline OpCase PadSequencesGrad(SplitMix& random) {
  OpCase c = PadSequencesOf(random, kFloat32);
  Index shape = c.inputs[0].shape;
  shape[0] = c.attrs[0].second.i();
  shape.insert(shape.begin(), c.inputs[1].shape[0] - 1);
  return {{RandomDense(random, kFloat32, shape), c.inputs[1], c.inputs[0]}, c.attrs};
}

}  // namespace cases

inline void AddGeneralCaseMakers(std::map<std::string, CaseMaker>& makers) {
  for (const char* op : {"greater", "greater_equal", "less", "less_equal"})
    makers[op] = cases::Order;
  makers["equal"] = makers["not_equal"] = cases::BinaryAny;
  makers["logical_and"] = makers["logical_or"] = cases::Logical;
  makers["logical_not"] = cases::Not;
  makers["where"] = cases::Where;
  makers["pow"] = cases::Pow;
  for (const char* op : {"abs", "sign"}) makers[op] = cases::UnaryNumeric;
  for (const char* op : {"sin", "cos", "floor", "ceil", "round"}) makers[op] = cases::UnaryFloat;
  makers["floor_divide"] = makers["modulo"] = cases::IntegerDivision;
  makers["hash_bucket"] = cases::HashBucket;
  makers["reduce_max"] = makers["reduce_min"] = cases::Extremum;
  makers["reduce_prod"] = cases::Product;
  makers["reduce_any"] = makers["reduce_all"] = cases::Bools;
  makers["argmax"] = cases::Argmax;
  makers["cumsum"] = cases::Cumsum;
  makers["products_of_others"] = cases::ProductsOfOthers;
  makers["sum_of_squares"] = cases::SumOfSquares;
  makers["expand_dims"] = cases::ExpandDims;
  makers["squeeze"] = cases::Squeeze;
  makers["tile"] = cases::Tile;
  makers["tile_grad"] = cases::TileGrad;
  makers["pad"] = cases::Pad;
  makers["unpad"] = cases::Unpad;
  makers["stop_gradient"] = cases::AnyType;
  makers["pad_sequences"] = cases::PadSequences;
  makers["pad_sequences_grad"] = cases::PadSequencesGrad;
}

}  // namespace mu::testing
