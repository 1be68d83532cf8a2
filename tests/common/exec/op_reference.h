// Every op as a plain loop, straight from the words of the op table (docs/reference/ops.md).
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "common/graph/op_table.h"
#include "tests/common/exec/dense.h"

namespace mu::testing {

using DenseInputs = std::vector<Dense>;
using Reference = std::vector<Dense> (*)(const DenseInputs& in, const AttrReader& attrs);

namespace reference {

template <typename F>
std::vector<Dense> Binary(const DenseInputs& in, DType dtype, F&& f) {
  const Index &a = in[0].shape, &b = in[1].shape;
  Index shape(std::max(a.size(), b.size()));
  for (size_t i = 0; i < shape.size(); ++i) {  // from the last axis
    const int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t db = i < b.size() ? b[b.size() - 1 - i] : 1;
    shape[shape.size() - 1 - i] = da == 1 ? db : da;
  }
  Dense out = Dense::Zeros(dtype, shape);
  ForEachIndex(shape, [&](const Index& index) {
    out.at(index) = f(in[0].at(Broadcasted(index, a)), in[1].at(Broadcasted(index, b)));
  });
  return {out};
}

template <typename F>
std::vector<Dense> Unary(const DenseInputs& in, F&& f) {
  Dense out = in[0];
  for (double& value : out.values) value = f(value);
  return {out};
}

inline bool Listed(absl::Span<const int64_t> axes, int64_t axis, bool empty_is_all) {
  if (axes.empty()) return empty_is_all;
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

inline std::vector<Dense> Reduce(const DenseInputs& in, const AttrReader& attrs, bool mean) {
  Index shape, kept;
  double count = 1;
  for (size_t i = 0; i < in[0].shape.size(); ++i) {
    const bool reduced = Listed(attrs.Ints("axes"), i, true);
    kept.push_back(reduced ? 1 : in[0].shape[i]);
    if (reduced) count *= static_cast<double>(in[0].shape[i]);
    if (!reduced || attrs.Bool("keep_dims")) shape.push_back(kept.back());
  }
  Dense out = Dense::Zeros(in[0].dtype, kept);
  ForEachIndex(in[0].shape,
               [&](const Index& index) { out.at(Broadcasted(index, kept)) += in[0].at(index); });
  if (mean && count > 0) {
    for (double& value : out.values) value /= count;
  }
  out.shape = shape;
  return {out};
}

inline std::vector<Dense> Matmul(const DenseInputs& in, const AttrReader& attrs) {
  const bool ta = attrs.Bool("transpose_a"), tb = attrs.Bool("transpose_b");
  const int64_t m = in[0].shape[ta ? 1 : 0], k = in[0].shape[ta ? 0 : 1];
  const int64_t n = in[1].shape[tb ? 0 : 1];
  Dense out = Dense::Zeros(kFloat32, {m, n});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t l = 0; l < k; ++l) {
        out.values[i * n + j] +=
            in[0].values[ta ? l * m + i : i * k + l] * in[1].values[tb ? j * k + l : l * n + j];
      }
    }
  }
  return {out};
}

inline std::vector<Dense> Concat(const DenseInputs& in, const AttrReader& attrs) {
  const size_t axis = attrs.Int("axis");
  Index shape = in[0].shape;
  shape[axis] = 0;
  for (const Dense& x : in) shape[axis] += x.shape[axis];
  Dense out = Dense::Zeros(in[0].dtype, shape);
  int64_t begin = 0;
  for (const Dense& x : in) {
    ForEachIndex(x.shape, [&](const Index& index) {
      Index to = index;
      to[axis] += begin;
      out.at(to) = x.at(index);
    });
    begin += x.shape[axis];
  }
  return {out};
}

inline std::vector<Dense> ConcatPiece(const DenseInputs& in, const AttrReader& attrs) {
  const size_t axis = attrs.Int("axis");
  int64_t begin = 0;
  for (int64_t i = 0; i < attrs.Int("index"); ++i) begin += in[i + 1].shape[axis];
  Dense out = Dense::Zeros(in[0].dtype, in[attrs.Int("index") + 1].shape);
  ForEachIndex(out.shape, [&](const Index& index) {
    Index from = index;
    from[axis] += begin;
    out.at(index) = in[0].at(from);
  });
  return {out};
}

inline std::vector<Dense> Slice(const DenseInputs& in, const AttrReader& attrs) {
  Index shape;
  for (size_t i = 0; i < in[0].shape.size(); ++i) {
    const int64_t size = attrs.Ints("size")[i];
    shape.push_back(size < 0 ? in[0].shape[i] - attrs.Ints("begin")[i] : size);
  }
  Dense out = Dense::Zeros(in[0].dtype, shape);
  ForEachIndex(shape, [&](const Index& index) {
    Index from = index;
    for (size_t i = 0; i < from.size(); ++i) from[i] += attrs.Ints("begin")[i];
    out.at(index) = in[0].at(from);
  });
  return {out};
}

inline std::vector<Dense> SliceGrad(const DenseInputs& in, const AttrReader& attrs) {
  Dense out = Dense::Zeros(kFloat32, in[1].shape);
  ForEachIndex(in[0].shape, [&](const Index& index) {
    Index to = index;
    for (size_t i = 0; i < to.size(); ++i) to[i] += attrs.Ints("begin")[i];
    out.at(to) = in[0].at(index);
  });
  return {out};
}

inline std::vector<Dense> Reshape(const DenseInputs& in, const AttrReader& attrs) {
  Dense out = in[0];
  const Shape wanted = attrs.GetShape("shape");
  out.shape.assign(wanted.begin(), wanted.end());
  int64_t known = 1;
  for (const int64_t dim : out.shape) known *= dim < 0 ? 1 : dim;
  for (int64_t& dim : out.shape) {
    if (dim < 0) dim = known == 0 ? 0 : in[0].elements() / known;
  }
  return {out};
}

inline std::vector<Dense> Transpose(const DenseInputs& in, const AttrReader& attrs) {
  const auto perm = attrs.Ints("perm");
  Index shape;
  for (const int64_t axis : perm) shape.push_back(in[0].shape[axis]);
  Dense out = Dense::Zeros(in[0].dtype, shape);
  ForEachIndex(shape, [&](const Index& index) {
    Index from(index.size());
    for (size_t i = 0; i < index.size(); ++i) from[perm[i]] = index[i];
    out.at(index) = in[0].at(from);
  });
  return {out};
}

// Calls f(index in the gathered tensor, index in params) for all of them, in order.
template <typename F>
void ForEachGathered(const Index& params, const Dense& indices, size_t axis, F&& f) {
  Index gathered(params.begin(), params.begin() + axis);
  gathered.insert(gathered.end(), indices.shape.begin(), indices.shape.end());
  gathered.insert(gathered.end(), params.begin() + axis + 1, params.end());
  ForEachIndex(gathered, [&](const Index& index) {
    const auto middle = index.begin() + axis;
    Index from(index.begin(), middle);
    from.push_back(static_cast<int64_t>(indices.at(Index(middle, middle + indices.shape.size()))));
    from.insert(from.end(), middle + indices.shape.size(), index.end());
    f(gathered, index, from);
  });
}

inline std::vector<Dense> Gather(const DenseInputs& in, const AttrReader& attrs) {
  const size_t axis = attrs.Int("axis");
  Index shape(in[0].shape.begin(), in[0].shape.begin() + axis);
  shape.insert(shape.end(), in[1].shape.begin(), in[1].shape.end());
  shape.insert(shape.end(), in[0].shape.begin() + axis + 1, in[0].shape.end());
  Dense out = Dense::Zeros(in[0].dtype, shape);
  ForEachGathered(in[0].shape, in[1], axis, [&](const Index&, const Index& to, const Index& from) {
    out.at(to) = in[0].at(from);
  });
  return {out};
}

inline std::vector<Dense> GatherGrad(const DenseInputs& in, const AttrReader& attrs) {
  Dense out = Dense::Zeros(kFloat32, in[2].shape);
  ForEachGathered(
      in[2].shape, in[1], attrs.Int("axis"),
      [&](const Index&, const Index& at, const Index& to) { out.at(to) += in[0].at(at); });
  return {out};
}

inline std::vector<Dense> BroadcastLike(const DenseInputs& in, const AttrReader& attrs) {
  Dense x = in[0];
  if (!attrs.Ints("axes").empty()) {
    x.shape.clear();
    size_t next = 0;
    for (size_t i = 0; i < in[1].shape.size(); ++i) {
      x.shape.push_back(Listed(attrs.Ints("axes"), i, false) ? 1 : in[0].shape[next++]);
    }
  }
  Dense out = Dense::Zeros(in[0].dtype, in[1].shape);
  ForEachIndex(out.shape,
               [&](const Index& index) { out.at(index) = x.at(Broadcasted(index, x.shape)); });
  return {out};
}

inline std::vector<Dense> ReduceToLike(const DenseInputs& in, const AttrReader&) {
  Dense out = Dense::Zeros(in[0].dtype, in[1].shape);
  ForEachIndex(in[0].shape, [&](const Index& index) {
    out.at(Broadcasted(index, out.shape)) += in[0].at(index);
  });
  return {out};
}

inline std::vector<Dense> Unique(const DenseInputs& in, const AttrReader&) {
  std::vector<Dense> out = {Dense::Zeros(kInt64, {0})};
  for (const Dense& ids : in) {
    Dense positions = Dense::Zeros(kInt32, ids.shape);
    for (size_t i = 0; i < ids.values.size(); ++i) {
      std::vector<double>& seen = out[0].values;
      const auto found = std::find(seen.begin(), seen.end(), ids.values[i]);
      positions.values[i] = static_cast<double>(found - seen.begin());
      if (found == seen.end()) seen.push_back(ids.values[i]);
    }
    out.push_back(positions);
  }
  out[0].shape[0] = static_cast<int64_t>(out[0].values.size());
  return out;
}

// What value `i` of bag `b` is multiplied by.
inline double Factor(const Dense& splits, const Dense* weights, const std::string& combiner,
                     int64_t b, int64_t i) {
  double sum = 0, squares = 0;
  const auto weight = [weights](int64_t j) {
    return weights == nullptr ? 1.0 : weights->values[j];
  };
  for (auto j = static_cast<int64_t>(splits.values[b]); j < splits.values[b + 1]; ++j) {
    sum += weight(j);
    squares += weight(j) * weight(j);
  }
  if (combiner == "sum") return weight(i);
  const double divisor = combiner == "mean" ? sum : std::sqrt(squares);
  return divisor == 0 ? 0 : weight(i) / divisor;
}

inline std::vector<Dense> Segments(const Dense& rows_or_dy, const Dense& positions,
                                   const Dense& splits, const Dense* weights,
                                   const std::string& combiner, int64_t dim, Dense out,
                                   bool gradient) {
  for (size_t b = 0; b + 1 < splits.values.size(); ++b) {
    for (auto i = static_cast<int64_t>(splits.values[b]); i < splits.values[b + 1]; ++i) {
      const auto row = static_cast<int64_t>(positions.values[i]);
      const int64_t from = gradient ? static_cast<int64_t>(b) : row,
                    to = gradient ? row : static_cast<int64_t>(b);
      for (int64_t d = 0; d < dim; ++d) {
        out.values[to * dim + d] += Factor(splits, weights, combiner, static_cast<int64_t>(b), i) *
                                    rows_or_dy.values[from * dim + d];
      }
    }
  }
  return {out};
}

inline std::vector<Dense> SegmentCombine(const DenseInputs& in, const AttrReader& attrs) {
  const int64_t dim = in[0].shape[1];
  return Segments(in[0], in[1], in[2], in.size() > 3 ? &in[3] : nullptr, attrs.String("combiner"),
                  dim, Dense::Zeros(kFloat32, {in[2].shape[0] - 1, dim}), false);
}

inline std::vector<Dense> SegmentCombineGrad(const DenseInputs& in, const AttrReader& attrs) {
  return Segments(in[0], in[1], in[2], in.size() > 4 ? &in[4] : nullptr, attrs.String("combiner"),
                  in[3].shape[1], Dense::Zeros(kFloat32, in[3].shape), true);
}

inline std::vector<Dense> Cast(const DenseInputs& in, const AttrReader& attrs) {
  Dense out = in[0];
  out.dtype = attrs.Type("dtype");
  for (double& value : out.values) {
    if (out.dtype == kBool) {
      value = value != 0;
    } else if (out.dtype != kFloat32) {
      const double low = out.dtype == kUInt8 && in[0].dtype == kFloat32 ? 0 : -1e300;
      value = std::max(low, std::trunc(value));
      if (out.dtype == kUInt8 && value < 0) value += 256;  // integers wrap
    }
  }
  return {out};
}

// The draw of element `i` in step 0.
inline uint32_t DrawOf(const AttrReader& attrs, size_t i) {
  const uint64_t stream = HashCombine(static_cast<uint64_t>(attrs.Int("seed")),
                                      static_cast<uint64_t>(attrs.Int("index")));
  const uint64_t pair = Mix64(HashCombine(stream, 0) + (i / 2 + 1) * kGolden);
  return static_cast<uint32_t>(i % 2 == 0 ? pair : pair >> 32);
}

inline std::vector<Dense> Dropout(const DenseInputs& in, const AttrReader& attrs) {
  const double rate = attrs.Float("rate");
  Dense out = in[0];
  for (size_t i = 0; i < out.values.size(); ++i) {
    const bool dropped = DrawOf(attrs, i) / 4294967296.0 < rate;
    out.values[i] = dropped ? 0 : out.values[i] / (1 - rate);
  }
  return {out};
}

inline std::vector<Dense> RandomUniform(const DenseInputs& in, const AttrReader& attrs) {
  const double low = attrs.Float("low"), high = attrs.Float("high");
  Dense out = Dense::Zeros(kFloat32, in[0].shape);
  for (size_t i = 0; i < out.values.size(); ++i) {
    out.values[i] = low + (DrawOf(attrs, i) >> 8) / 16777216.0 * (high - low);
  }
  return {out};
}

inline std::vector<Dense> Count(const DenseInputs& in, const AttrReader& attrs) {
  Dense out = Dense::Zeros(kFloat32, {});
  out.values[0] = 1;
  for (size_t i = 0; i < in[0].shape.size(); ++i) {
    if (Listed(attrs.Ints("axes"), i, true)) out.values[0] *= static_cast<double>(in[0].shape[i]);
  }
  if (attrs.Bool("at_least_one")) out.values[0] = std::max(out.values[0], 1.0);
  return {out};
}

inline std::vector<Dense> MeanSquaredError(const DenseInputs& in, const AttrReader&) {
  Dense out = Dense::Zeros(kFloat32, {});
  for (size_t i = 0; i < in[0].values.size(); ++i) {
    out.values[0] += (in[0].values[i] - in[1].values[i]) * (in[0].values[i] - in[1].values[i]);
  }
  if (!in[0].values.empty()) out.values[0] /= static_cast<double>(in[0].values.size());
  return {out};
}

}  // namespace reference

#define MU_BINARY(expression, type)                                                              \
  [](const DenseInputs& in, const AttrReader&) {                                                 \
    return reference::Binary(in, type, [](double a, double b) -> double { return expression; }); \
  }
#define MU_UNARY(expression)                                                    \
  [](const DenseInputs& in, const AttrReader&) {                                \
    return reference::Unary(in, [](double x) -> double { return expression; }); \
  }

inline const std::map<std::string, Reference>& References() {
  static const auto* const references = new std::map<std::string, Reference>{
      {"add", MU_BINARY(a + b, in[0].dtype)},
      {"subtract", MU_BINARY(a - b, in[0].dtype)},
      {"multiply", MU_BINARY(a * b, in[0].dtype)},
      {"divide", MU_BINARY(a / b, kFloat32)},
      {"maximum", MU_BINARY(std::max(a, b), in[0].dtype)},
      {"minimum", MU_BINARY(std::min(a, b), in[0].dtype)},
      {"relu_grad", MU_BINARY(b > 0 ? a : 0, kFloat32)},
      {"sigmoid_cross_entropy",
       MU_BINARY(std::max(a, 0.0) - a * b + std::log1p(std::exp(-std::abs(a))), kFloat32)},
      {"negate", MU_UNARY(-x)},
      {"relu", MU_UNARY(std::max(x, 0.0))},
      {"sigmoid", MU_UNARY(1 / (1 + std::exp(-x)))},
      {"tanh", MU_UNARY(std::tanh(x))},
      {"log", MU_UNARY(std::log(x))},
      {"log1p", MU_UNARY(std::log1p(x))},
      {"exp", MU_UNARY(std::exp(x))},
      {"sqrt", MU_UNARY(std::sqrt(x))},
      {"square", MU_UNARY(x * x)},
      {"zeros_like", MU_UNARY(x * 0)},
      {"ones_like", MU_UNARY(x * 0 + 1)},
      {"cast", reference::Cast},
      {"matmul", reference::Matmul},
      {"reduce_sum",
       [](const DenseInputs& in, const AttrReader& a) { return reference::Reduce(in, a, false); }},
      {"reduce_mean",
       [](const DenseInputs& in, const AttrReader& a) { return reference::Reduce(in, a, true); }},
      {"mean_squared_error", reference::MeanSquaredError},
      {"count", reference::Count},
      {"concat", reference::Concat},
      {"slice", reference::Slice},
      {"reshape", reference::Reshape},
      {"transpose", reference::Transpose},
      {"gather", reference::Gather},
      {"broadcast_like", reference::BroadcastLike},
      {"reduce_to_like", reference::ReduceToLike},
      {"reshape_like",
       [](const DenseInputs& in, const AttrReader&) {
         return std::vector<Dense>{{in[0].dtype, in[1].shape, in[0].values}};
       }},
      {"slice_grad", reference::SliceGrad},
      {"concat_piece", reference::ConcatPiece},
      {"gather_grad", reference::GatherGrad},
      {"dropout", reference::Dropout},
      {"random_uniform", reference::RandomUniform},
      {"unique", reference::Unique},
      {"segment_combine", reference::SegmentCombine},
      {"segment_combine_grad", reference::SegmentCombineGrad},
  };
  return *references;
}

#undef MU_BINARY
#undef MU_UNARY

}  // namespace mu::testing
