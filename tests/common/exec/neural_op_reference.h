// The ops of neural networks as plain loops over doubles.
#pragma once

#include "tests/common/exec/op_reference.h"

namespace mu::testing {
namespace reference {

inline Index WithoutLast(const Index& shape) { return Index(shape.begin(), shape.end() - 1); }

// Calls f(row number, first element) for each row along the last axis.
template <typename F>
void ForEachRow(const Dense& x, F&& f) {
  const int64_t width = x.shape.back();
  for (int64_t begin = 0; begin < x.elements(); begin += width) f(begin / width, begin);
}

inline double LogSumExpOf(const Dense& x, int64_t begin) {
  const double max =
      *std::max_element(x.values.begin() + begin, x.values.begin() + begin + x.shape.back());
  double sum = 0;
  for (int64_t i = 0; i < x.shape.back(); ++i) sum += std::exp(x.values[begin + i] - max);
  return max + std::log(sum);
}

inline std::vector<Dense> LogSoftmax(const DenseInputs& in, const AttrReader&) {
  Dense out = in[0];
  ForEachRow(in[0], [&](int64_t, int64_t begin) {
    const double log_sum = LogSumExpOf(in[0], begin);
    for (int64_t i = 0; i < in[0].shape.back(); ++i) out.values[begin + i] -= log_sum;
  });
  return {out};
}
inline std::vector<Dense> Softmax(const DenseInputs& in, const AttrReader& attrs) {
  std::vector<Dense> out = LogSoftmax(in, attrs);
  for (double& value : out[0].values) value = std::exp(value);
  return out;
}
inline std::vector<Dense> LogSumExp(const DenseInputs& in, const AttrReader&) {
  Dense out = Dense::Zeros(kFloat32, WithoutLast(in[0].shape));
  ForEachRow(in[0],
             [&](int64_t row, int64_t begin) { out.values[row] = LogSumExpOf(in[0], begin); });
  return {out};
}

inline std::vector<Dense> DenseCrossEntropy(const DenseInputs& in, const AttrReader& attrs) {
  const Dense log_softmax = LogSoftmax(in, attrs)[0];
  Dense out = Dense::Zeros(kFloat32, WithoutLast(in[0].shape));
  ForEachRow(in[0], [&](int64_t row, int64_t begin) {
    for (int64_t i = begin; i < begin + in[0].shape.back(); ++i)
      out.values[row] -= in[1].values[i] * log_softmax.values[i];
  });
  return {out};
}
inline std::vector<Dense> SparseCrossEntropy(const DenseInputs& in, const AttrReader& attrs) {
  const Dense log_softmax = LogSoftmax(in, attrs)[0];
  Dense out = Dense::Zeros(kFloat32, in[1].shape);
  ForEachRow(in[0], [&](int64_t row, int64_t begin) {
    out.values[row] = -log_softmax.values[begin + static_cast<int64_t>(in[1].values[row])];
  });
  return {out};
}
inline std::vector<Dense> SparseCrossEntropyGrad(const DenseInputs& in, const AttrReader& attrs) {
  Dense out = Softmax({in[1]}, attrs)[0];
  ForEachRow(in[1], [&](int64_t row, int64_t begin) {
    out.values[begin + static_cast<int64_t>(in[2].values[row])] -= 1;
    for (int64_t i = begin; i < begin + in[1].shape.back(); ++i) out.values[i] *= in[0].values[row];
  });
  return {out};
}

// (x - mean) / sqrt(variance + epsilon), and that divisor for each row.
inline Dense Normalized(const Dense& x, double epsilon, bool centred,
                        std::vector<double>* divisors) {
  Dense out = x;
  const double width = static_cast<double>(x.shape.back());
  ForEachRow(x, [&](int64_t, int64_t begin) {
    double mean = 0, square = 0;
    const int64_t end = begin + x.shape.back();
    for (int64_t i = begin; centred && i < end; ++i) mean += x.values[i] / width;
    for (int64_t i = begin; i < end; ++i)
      square += (x.values[i] - mean) * (x.values[i] - mean) / width;
    divisors->push_back(std::sqrt(square + epsilon));
    for (int64_t i = begin; i < end; ++i) out.values[i] = (x.values[i] - mean) / divisors->back();
  });
  return out;
}
inline std::vector<Dense> Norm(const DenseInputs& in, const AttrReader& attrs) {
  std::vector<double> divisors;
  Dense out = Normalized(in[0], attrs.Float("epsilon"), in.size() == 3, &divisors);
  for (size_t i = 0; i < out.values.size(); ++i) {
    const size_t column = i % static_cast<size_t>(in[0].shape.back());
    out.values[i] *= in[1].values[column];
    if (in.size() == 3) out.values[i] += in[2].values[column];
  }
  return {out};
}
// By the Jacobian: d normal[i] / d x[j] = (delta_ij - 1/n - normal[i] normal[j] / n) / divisor,
// without 1/n if rows are not centred.
inline std::vector<Dense> NormGrad(const DenseInputs& in, const AttrReader& attrs, bool centred) {
  const Dense &dy = in[0], &x = in[1], &gamma = in[2];
  std::vector<double> divisors;
  const Dense normal = Normalized(x, attrs.Float("epsilon"), centred, &divisors);
  Dense dx = Dense::Zeros(kFloat32, x.shape), dgamma = Dense::Zeros(kFloat32, gamma.shape),
        dbeta = dgamma;
  const int64_t n = x.shape.back();
  ForEachRow(x, [&](int64_t row, int64_t begin) {
    for (int64_t i = 0; i < n; ++i) {
      const double d = dy.values[begin + i], y = normal.values[begin + i];
      dgamma.values[i] += d * y;
      dbeta.values[i] += d;
      for (int64_t j = 0; j < n; ++j) {
        double slope = (i == j ? 1.0 : 0.0) - y * normal.values[begin + j] / static_cast<double>(n);
        if (centred) slope -= 1.0 / static_cast<double>(n);
        dx.values[begin + j] += d * gamma.values[i] * slope / divisors[row];
      }
    }
  });
  if (centred) return {dx, dgamma, dbeta};
  return {dx, dgamma};
}

// Calls f(pair number, i, j) for the pairs of n vectors.
template <typename F>
void ForEachPair(int64_t n, F&& f) {
  int64_t number = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) f(number++, i, j);
  }
}
inline std::vector<Dense> Interactions(const DenseInputs& in, const AttrReader&) {
  const int64_t batch = in[0].shape[0], n = in[0].shape[1], dim = in[0].shape[2];
  Dense out = Dense::Zeros(kFloat32, {batch, n * (n - 1) / 2});
  for (int64_t b = 0; b < batch; ++b) {
    ForEachPair(n, [&](int64_t pair, int64_t i, int64_t j) {
      for (int64_t d = 0; d < dim; ++d)
        out.at({b, pair}) += in[0].at({b, i, d}) * in[0].at({b, j, d});
    });
  }
  return {out};
}
inline std::vector<Dense> InteractionsGrad(const DenseInputs& in, const AttrReader&) {
  const int64_t batch = in[1].shape[0], n = in[1].shape[1], dim = in[1].shape[2];
  Dense out = Dense::Zeros(kFloat32, in[1].shape);
  for (int64_t b = 0; b < batch; ++b) {
    ForEachPair(n, [&](int64_t pair, int64_t i, int64_t j) {
      for (int64_t d = 0; d < dim; ++d) {
        out.at({b, i, d}) += in[0].at({b, pair}) * in[1].at({b, j, d});
        out.at({b, j, d}) += in[0].at({b, pair}) * in[1].at({b, i, d});
      }
    });
  }
  return {out};
}

inline std::vector<Dense> BatchMatmul(const DenseInputs& in, const AttrReader& attrs) {
  const bool ta = attrs.Bool("transpose_a"), tb = attrs.Bool("transpose_b");
  const size_t ra = in[0].shape.size() - 2, rb = in[1].shape.size() - 2;
  Index leading(std::max(ra, rb), 1);
  for (size_t i = 0; i < leading.size(); ++i) {  // from the last axis
    const int64_t a = i < ra ? in[0].shape[ra - 1 - i] : 1;
    leading[leading.size() - 1 - i] = a == 1 && i < rb ? in[1].shape[rb - 1 - i] : a;
  }
  const int64_t m = in[0].shape[ra + (ta ? 1 : 0)], k = in[0].shape[ra + (ta ? 0 : 1)];
  const int64_t n = in[1].shape[rb + (tb ? 0 : 1)];
  Index shape = leading;
  shape.insert(shape.end(), {m, n});
  Dense out = Dense::Zeros(kFloat32, shape);
  // Which matrix of an operand is multiplied for the leading index of the result.
  const auto matrix = [](const Index& lead, const Dense& x, size_t rank) {
    Dense numbers{kInt64, Index(x.shape.begin(), x.shape.begin() + rank), {}};
    return numbers.Offset(Broadcasted(lead, numbers.shape));
  };
  double* to = out.values.data();
  ForEachIndex(leading, [&](const Index& lead) {
    const double* const a = in[0].values.data() + matrix(lead, in[0], ra) * m * k;
    const double* const b = in[1].values.data() + matrix(lead, in[1], rb) * k * n;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j, ++to) {
        for (int64_t l = 0; l < k; ++l) {
          *to += a[ta ? l * m + i : i * k + l] * b[tb ? j * k + l : l * n + j];
        }
      }
    }
  });
  return {out};
}

// Calls f(window's index [b, oy, ox], place in the window {fy, fx}, pixel's index [b, y, x]) for
// all pixels of all windows of `size` that are inside of the images.
template <typename F>
void ForEachPixel(const Index& images, const Index& size, const AttrReader& attrs, F&& f) {
  int64_t count[2], before[2];
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t input = images[1 + axis], stride = attrs.Ints("strides")[axis];
    const bool same = attrs.String("padding") == "same";
    count[axis] = same ? (input + stride - 1) / stride : (input - size[axis]) / stride + 1;
    before[axis] =
        same ? std::max<int64_t>((count[axis] - 1) * stride + size[axis] - input, 0) / 2 : 0;
  }
  ForEachIndex({images[0], count[0], count[1], size[0], size[1]}, [&](const Index& i) {
    const int64_t y = i[1] * attrs.Ints("strides")[0] - before[0] + i[3];
    const int64_t x = i[2] * attrs.Ints("strides")[1] - before[1] + i[4];
    if (y < 0 || y >= images[1] || x < 0 || x >= images[2]) return;
    f(Index{i[0], i[1], i[2]}, Index{i[3], i[4]}, Index{i[0], y, x});
  });
}
inline Index With(Index index, std::initializer_list<int64_t> more) {
  index.insert(index.end(), more);
  return index;
}
inline Index WindowsShape(const Index& images, const Index& size, const AttrReader& attrs,
                          int64_t channels) {
  Index shape = {images[0]};
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t input = images[1 + axis], stride = attrs.Ints("strides")[axis];
    shape.push_back(attrs.String("padding") == "same" ? (input + stride - 1) / stride
                                                      : (input - size[axis]) / stride + 1);
  }
  shape.push_back(channels);
  return shape;
}

// Calls f(index of the result, of the filter, of the images) for all products of a convolution.
template <typename F>
void ForEachProduct(const Index& images, const Index& filter, const AttrReader& attrs, F&& f) {
  ForEachPixel(images, filter, attrs,
               [&](const Index& window, const Index& at, const Index& pixel) {
                 ForEachIndex({filter[2], filter[3]}, [&](const Index& i) {
                   f(With(window, {i[1]}), With(at, {i[0], i[1]}), With(pixel, {i[0]}));
                 });
               });
}
inline std::vector<Dense> Conv2d(const DenseInputs& in, const AttrReader& attrs) {
  Dense out = Dense::Zeros(kFloat32, WindowsShape(in[0].shape, in[1].shape, attrs, in[1].shape[3]));
  ForEachProduct(in[0].shape, in[1].shape, attrs,
                 [&](const Index& to, const Index& filter, const Index& from) {
                   out.at(to) += in[0].at(from) * in[1].at(filter);
                 });
  return {out};
}
inline std::vector<Dense> Conv2dGrad(const DenseInputs& in, const AttrReader& attrs, bool input) {
  Dense out = Dense::Zeros(kFloat32, in[input ? 1 : 2].shape);
  ForEachProduct(in[1].shape, in[2].shape, attrs,
                 [&](const Index& window, const Index& filter, const Index& pixel) {
                   if (input) {
                     out.at(pixel) += in[0].at(window) * in[2].at(filter);
                   } else {
                     out.at(filter) += in[0].at(window) * in[1].at(pixel);
                   }
                 });
  return {out};
}

inline Index SizeOf(const AttrReader& attrs) {
  return {attrs.Ints("size")[0], attrs.Ints("size")[1]};
}
// For each element of the result, the largest of its window and where that is; or the number of
// pixels.
inline std::vector<Dense> Pool(const DenseInputs& in, const AttrReader& attrs, bool max,
                               bool gradient) {
  const Dense& x = in[gradient ? 1 : 0];
  const int64_t channels = x.shape[3];
  Dense out = Dense::Zeros(kFloat32, WindowsShape(x.shape, SizeOf(attrs), attrs, channels));
  Dense pixels = out;
  std::map<Index, Index> largest;
  const auto each = [&](auto&& f) {
    ForEachPixel(x.shape, SizeOf(attrs), attrs,
                 [&](const Index& window, const Index&, const Index& pixel) {
                   for (int64_t c = 0; c < channels; ++c) f(With(window, {c}), With(pixel, {c}));
                 });
  };
  each([&](const Index& window, const Index& pixel) {
    pixels.at(window) += 1;
    out.at(window) += x.at(pixel);
    const auto [found, added] = largest.emplace(window, pixel);
    if (!added && x.at(pixel) > x.at(found->second)) found->second = pixel;
  });
  if (!gradient) {
    ForEachIndex(out.shape, [&](const Index& window) {
      out.at(window) = max ? x.at(largest.at(window)) : out.at(window) / pixels.at(window);
    });
    return {out};
  }
  Dense dx = Dense::Zeros(kFloat32, x.shape);
  each([&](const Index& window, const Index& pixel) {
    if (!max) dx.at(pixel) += in[0].at(window) / pixels.at(window);
    if (max && largest.at(window) == pixel) dx.at(pixel) += in[0].at(window);
  });
  return {dx};
}

}  // namespace reference

#define MU_LOOP(call) [](const DenseInputs& in, const AttrReader& attrs) { return reference::call; }

inline const std::map<std::string, Reference>& NeuralReferences() {
  static const auto* const references = new std::map<std::string, Reference>{
      {"erf",
       [](const DenseInputs& in, const AttrReader&) {
         return reference::Unary(in, [](double x) { return std::erf(x); });
       }},
      {"softmax", reference::Softmax},
      {"log_softmax", reference::LogSoftmax},
      {"logsumexp", reference::LogSumExp},
      {"softmax_cross_entropy", reference::DenseCrossEntropy},
      {"sparse_softmax_cross_entropy", reference::SparseCrossEntropy},
      {"sparse_softmax_cross_entropy_grad", reference::SparseCrossEntropyGrad},
      {"layer_norm", reference::Norm},
      {"layer_norm_grad", MU_LOOP(NormGrad(in, attrs, true))},
      {"rms_norm", reference::Norm},
      {"rms_norm_grad", MU_LOOP(NormGrad(in, attrs, false))},
      {"pairwise_interactions", reference::Interactions},
      {"pairwise_interactions_grad", reference::InteractionsGrad},
      {"batch_matmul", reference::BatchMatmul},
      {"conv2d", reference::Conv2d},
      {"conv2d_input_grad", MU_LOOP(Conv2dGrad(in, attrs, true))},
      {"conv2d_filter_grad", MU_LOOP(Conv2dGrad(in, attrs, false))},
      {"max_pool2d", MU_LOOP(Pool(in, attrs, true, false))},
      {"max_pool2d_grad", MU_LOOP(Pool(in, attrs, true, true))},
      {"avg_pool2d", MU_LOOP(Pool(in, attrs, false, false))},
      {"avg_pool2d_grad", MU_LOOP(Pool(in, attrs, false, true))},
  };
  return *references;
}

#undef MU_LOOP

}  // namespace mu::testing
