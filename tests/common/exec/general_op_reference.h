// Plain loops of the ops of general_op_cases.h.
#pragma once

#include <cmath>
#include <limits>

#include "tests/common/exec/op_reference.h"

namespace mu::testing {
namespace reference {

inline std::vector<Dense> Where(const DenseInputs& in, const AttrReader&) {
  const Dense values = Binary({in[1], in[2]}, in[1].dtype, [](double, double) { return 0.0; })[0];
  Dense out = Binary({in[0], values}, in[1].dtype, [](double, double) { return 0.0; })[0];
  ForEachIndex(out.shape, [&](const Index& index) {
    const Dense& taken = in[0].at(Broadcasted(index, in[0].shape)) != 0 ? in[1] : in[2];
    out.at(index) = taken.at(Broadcasted(index, taken.shape));
  });
  return {out};
}

inline std::vector<Dense> HashBucket(const DenseInputs& in, const AttrReader& attrs) {
  Dense out = in[0];
  out.dtype = kInt64;
  for (double& value : out.values) {
    const uint64_t hash = HashCombine(static_cast<uint64_t>(attrs.Int("seed")),
                                      static_cast<uint64_t>(static_cast<int64_t>(value)));
    const auto scaled =
        static_cast<unsigned __int128>(hash) * static_cast<uint64_t>(attrs.Int("buckets"));
    value = static_cast<double>(static_cast<uint64_t>(scaled >> 64));
  }
  return {out};
}

// A reduction that starts with `start` and goes on with f(so far, element).
template <typename F>
std::vector<Dense> Fold(const DenseInputs& in, const AttrReader& attrs, double start, F&& f) {
  Index shape, kept;
  for (size_t i = 0; i < in[0].shape.size(); ++i) {
    const bool reduced = Listed(attrs.Ints("axes"), static_cast<int64_t>(i), true);
    kept.push_back(reduced ? 1 : in[0].shape[i]);
    if (!reduced || attrs.Bool("keep_dims")) shape.push_back(kept.back());
  }
  Dense out = Dense::Zeros(in[0].dtype, kept);
  for (double& value : out.values) value = start;
  ForEachIndex(in[0].shape, [&](const Index& index) {
    double& value = out.at(Broadcasted(index, kept));
    value = f(value, in[0].at(index));
  });
  out.shape = shape;
  return {out};
}

inline double Smallest(DType dtype) {
  if (dtype == kFloat32) return -std::numeric_limits<double>::infinity();
  return dtype == kInt32 ? std::numeric_limits<int32_t>::min()
                         : static_cast<double>(std::numeric_limits<int64_t>::min());
}
inline std::vector<Dense> Max(const DenseInputs& in, const AttrReader& attrs) {
  return Fold(in, attrs, Smallest(in[0].dtype), [](double a, double b) { return std::max(a, b); });
}
// The largest int64 is no double; ToDense rounds what the kernel makes of it to the same.
inline std::vector<Dense> Min(const DenseInputs& in, const AttrReader& attrs) {
  const double largest = in[0].dtype == kFloat32 ? std::numeric_limits<double>::infinity()
                         : in[0].dtype == kInt32
                             ? std::numeric_limits<int32_t>::max()
                             : static_cast<double>(std::numeric_limits<int64_t>::max());
  return Fold(in, attrs, largest, [](double a, double b) { return std::min(a, b); });
}
inline std::vector<Dense> Prod(const DenseInputs& in, const AttrReader& attrs) {
  return Fold(in, attrs, 1, [](double a, double b) { return a * b; });
}
inline std::vector<Dense> AnyOf(const DenseInputs& in, const AttrReader& attrs) {
  return Fold(in, attrs, 0, [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; });
}
inline std::vector<Dense> AllOf(const DenseInputs& in, const AttrReader& attrs) {
  return Fold(in, attrs, 1, [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; });
}

inline std::vector<Dense> Argmax(const DenseInputs& in, const AttrReader& attrs) {
  const size_t axis = static_cast<size_t>(attrs.Int("axis"));
  Index shape = in[0].shape;
  shape.erase(shape.begin() + static_cast<int64_t>(axis));
  Dense out = Dense::Zeros(kInt64, shape);
  ForEachIndex(in[0].shape, [&](const Index& index) {
    Index to = index, best = index;
    to.erase(to.begin() + static_cast<int64_t>(axis));
    best[axis] = static_cast<int64_t>(out.at(to));
    if (in[0].at(index) > in[0].at(best)) out.at(to) = static_cast<double>(index[axis]);
  });
  return {out};
}

inline std::vector<Dense> Cumsum(const DenseInputs& in, const AttrReader& attrs) {
  const size_t axis = static_cast<size_t>(attrs.Int("axis"));
  Dense out = Dense::Zeros(in[0].dtype, in[0].shape);
  ForEachIndex(in[0].shape, [&](const Index& index) {
    for (Index from = index;;) {
      const bool skipped = attrs.Bool("exclusive") && from[axis] == index[axis];
      if (!skipped) out.at(index) += in[0].at(from);
      from[axis] += attrs.Bool("reverse") ? 1 : -1;
      if (from[axis] < 0 || from[axis] >= in[0].shape[axis]) break;
    }
  });
  return {out};
}

inline std::vector<Dense> ProductsOfOthers(const DenseInputs& in, const AttrReader& attrs) {
  Index kept;
  for (size_t i = 0; i < in[0].shape.size(); ++i) {
    const bool reduced = Listed(attrs.Ints("axes"), static_cast<int64_t>(i), true);
    kept.push_back(reduced ? 1 : in[0].shape[i]);
  }
  // From both sides: a product of those before, and one of those behind.
  Dense out = in[0], before = Dense::Zeros(kFloat32, kept);
  for (double& value : before.values) value = 1;
  Dense behind = before;
  std::vector<Index> order;
  ForEachIndex(in[0].shape, [&](const Index& index) {
    order.push_back(index);
    out.at(index) = before.at(Broadcasted(index, kept));
    before.at(Broadcasted(index, kept)) *= in[0].at(index);
  });
  std::reverse(order.begin(), order.end());
  for (const Index& index : order) {
    out.at(index) *= behind.at(Broadcasted(index, kept));
    behind.at(Broadcasted(index, kept)) *= in[0].at(index);
  }
  return {out};
}

inline std::vector<Dense> SumOfSquares(const DenseInputs& in, const AttrReader& attrs) {
  Dense out = Dense::Zeros(kFloat32, {});
  for (const Dense& x : in) {
    for (const double value : x.values) out.values[0] += value * value;
  }
  if (attrs.Bool("root")) out.values[0] = std::sqrt(out.values[0]);
  return {out};
}

inline std::vector<Dense> ExpandDims(const DenseInputs& in, const AttrReader& attrs) {
  const auto axes = attrs.Ints("axes");
  Index shape = in[0].shape;
  for (const int64_t axis : axes) shape.insert(shape.begin() + axis, 1);  // they are ascending
  return {{in[0].dtype, shape, in[0].values}};
}
inline std::vector<Dense> Squeeze(const DenseInputs& in, const AttrReader& attrs) {
  Index shape = in[0].shape;
  shape.erase(shape.begin() + attrs.Ints("axes")[0]);
  return {{in[0].dtype, shape, in[0].values}};
}

inline Index Modulo(const Index& index, const Index& shape) {
  Index result(index.size());
  for (size_t i = 0; i < index.size(); ++i) result[i] = index[i] % shape[i];
  return result;
}
inline std::vector<Dense> Tile(const DenseInputs& in, const AttrReader& attrs) {
  Index shape = in[0].shape;
  for (size_t i = 0; i < shape.size(); ++i) shape[i] *= attrs.Ints("multiples")[i];
  Dense out = Dense::Zeros(in[0].dtype, shape);
  ForEachIndex(shape,
               [&](const Index& index) { out.at(index) = in[0].at(Modulo(index, in[0].shape)); });
  return {out};
}
inline std::vector<Dense> TileGrad(const DenseInputs& in, const AttrReader&) {
  Dense out = Dense::Zeros(kFloat32, in[1].shape);
  ForEachIndex(in[0].shape,
               [&](const Index& index) { out.at(Modulo(index, in[1].shape)) += in[0].at(index); });
  return {out};
}

inline std::vector<Dense> Pad(const DenseInputs& in, const AttrReader& attrs) {
  Index shape = in[0].shape;
  for (size_t i = 0; i < shape.size(); ++i)
    shape[i] += attrs.Ints("before")[i] + attrs.Ints("after")[i];
  Dense out = Dense::Zeros(in[0].dtype, shape);
  for (double& value : out.values) value = attrs.Float("value");
  ForEachIndex(in[0].shape, [&](const Index& index) {
    Index to = index;
    for (size_t i = 0; i < to.size(); ++i) to[i] += attrs.Ints("before")[i];
    out.at(to) = in[0].at(index);
  });
  return {out};
}
inline std::vector<Dense> Unpad(const DenseInputs& in, const AttrReader& attrs) {
  Dense out = Dense::Zeros(in[0].dtype, in[1].shape);
  ForEachIndex(out.shape, [&](const Index& index) {
    Index from = index;
    for (size_t i = 0; i < from.size(); ++i) from[i] += attrs.Ints("before")[i];
    out.at(index) = in[0].at(from);
  });
  return {out};
}

// The place of value `i` in its sequence's row; -1 if it is cut off.
inline int64_t PlaceOf(const Dense& splits, size_t b, int64_t i, const AttrReader& attrs) {
  const int64_t begin = static_cast<int64_t>(splits.values[b]);
  const int64_t size = static_cast<int64_t>(splits.values[b + 1]) - begin;
  const int64_t length = attrs.Int("length");
  const int64_t skipped = attrs.Bool("keep_last") ? std::max<int64_t>(size - length, 0) : 0;
  const int64_t place = i - begin - skipped;
  return place < length ? place : -1;
}
inline std::vector<Dense> Sequences(const Dense& from, const Dense& splits, const Index& values,
                                    const AttrReader& attrs, bool gradient) {
  Index padded = values;
  padded[0] = attrs.Int("length");
  padded.insert(padded.begin(), splits.shape[0] - 1);
  Dense out = Dense::Zeros(from.dtype, gradient ? values : padded);
  for (size_t b = 0; b + 1 < splits.values.size(); ++b) {
    ForEachIndex(values, [&](const Index& index) {
      const int64_t i = index[0];
      if (i < splits.values[b] || i >= splits.values[b + 1]) return;
      Index row = index;
      row[0] = PlaceOf(splits, b, i, attrs);
      if (row[0] < 0) return;
      row.insert(row.begin(), static_cast<int64_t>(b));
      if (gradient) {
        out.at(index) = from.at(row);
      } else {
        out.at(row) = from.at(index);
      }
    });
  }
  return {out};
}
inline std::vector<Dense> PadSequences(const DenseInputs& in, const AttrReader& attrs) {
  return Sequences(in[0], in[1], in[0].shape, attrs, false);
}
inline std::vector<Dense> PadSequencesGrad(const DenseInputs& in, const AttrReader& attrs) {
  return Sequences(in[0], in[1], in[2].shape, attrs, true);
}

}  // namespace reference

inline void AddGeneralReferences(std::map<std::string, Reference>& references) {
  using reference::Binary;
  using reference::Unary;
#define MU_BINARY(expression, type)                                                   \
  [](const DenseInputs& in, const AttrReader&) {                                      \
    return Binary(in, type, [](double a, double b) -> double { return expression; }); \
  }
#define MU_UNARY(expression)                                         \
  [](const DenseInputs& in, const AttrReader&) {                     \
    return Unary(in, [](double x) -> double { return expression; }); \
  }
  references["greater"] = MU_BINARY(a > b, kBool);
  references["greater_equal"] = MU_BINARY(a >= b, kBool);
  references["less"] = MU_BINARY(a < b, kBool);
  references["less_equal"] = MU_BINARY(a <= b, kBool);
  references["equal"] = MU_BINARY(a == b, kBool);
  references["not_equal"] = MU_BINARY(a != b, kBool);
  references["logical_and"] = MU_BINARY(a * b, kBool);
  references["logical_or"] = MU_BINARY(std::max(a, b), kBool);
  references["logical_not"] = MU_UNARY(1 - x);
  references["where"] = reference::Where;
  references["pow"] = MU_BINARY(std::pow(a, b), kFloat32);
  references["abs"] = MU_UNARY(std::abs(x));
  references["sign"] = MU_UNARY(static_cast<double>(x > 0) - static_cast<double>(x < 0));
  references["sin"] = MU_UNARY(std::sin(x));
  references["cos"] = MU_UNARY(std::cos(x));
  references["floor"] = MU_UNARY(std::floor(x));
  references["ceil"] = MU_UNARY(std::ceil(x));
  references["round"] = MU_UNARY(std::nearbyint(x));
  references["floor_divide"] = MU_BINARY(std::floor(a / b), in[0].dtype);
  references["modulo"] = MU_BINARY(a - b * std::floor(a / b), in[0].dtype);
  references["hash_bucket"] = reference::HashBucket;
  references["reduce_max"] = reference::Max;
  references["reduce_min"] = reference::Min;
  references["reduce_prod"] = reference::Prod;
  references["reduce_any"] = reference::AnyOf;
  references["reduce_all"] = reference::AllOf;
  references["argmax"] = reference::Argmax;
  references["cumsum"] = reference::Cumsum;
  references["products_of_others"] = reference::ProductsOfOthers;
  references["sum_of_squares"] = reference::SumOfSquares;
  references["expand_dims"] = reference::ExpandDims;
  references["squeeze"] = reference::Squeeze;
  references["tile"] = reference::Tile;
  references["tile_grad"] = reference::TileGrad;
  references["pad"] = reference::Pad;
  references["unpad"] = reference::Unpad;
  references["stop_gradient"] = MU_UNARY(x);
  references["pad_sequences"] = reference::PadSequences;
  references["pad_sequences_grad"] = reference::PadSequencesGrad;
#undef MU_BINARY
#undef MU_UNARY
}

}  // namespace mu::testing
