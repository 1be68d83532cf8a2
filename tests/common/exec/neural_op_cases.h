// Random inputs and attributes for the ops of neural networks.
#pragma once

#include "tests/common/exec/op_cases.h"

namespace mu::testing {
namespace cases {

// A shape of at least one axis, the last of at least one element.
inline Index RowsShape(SplitMix& random) {
  Index shape = RandomShape(random, 1, 3);
  shape.back() = Positive(random);
  return shape;
}
inline OpCase Rows(SplitMix& random) {
  OpCase c = {{RandomDense(random, kFloat32, RowsShape(random))}, {}};
  if (random.Below(2) == 0) {  // far apart: exp of them alone would overflow
    for (double& value : c.inputs[0].values) value = static_cast<float>(value * 100);
  }
  return c;
}

inline OpCase DenseCrossEntropy(SplitMix& random) {
  const Index shape = RowsShape(random);
  OpCase c = {{RandomDense(random, kFloat32, shape), RandomDense(random, kFloat32, shape)}, {}};
  for (double& label : c.inputs[1].values) label = label < 0 ? 0 : label;
  return c;
}
inline OpCase SparseCrossEntropy(SplitMix& random) {
  const Index shape = RowsShape(random);
  Dense labels = Dense::Zeros(IndexType(random), Index(shape.begin(), shape.end() - 1));
  for (double& label : labels.values) label = static_cast<double>(random.Below(shape.back()));
  return {{RandomDense(random, kFloat32, shape), labels}, {}};
}
inline OpCase SparseCrossEntropyGrad(SplitMix& random) {
  OpCase c = SparseCrossEntropy(random);
  c.inputs.insert(c.inputs.begin(), RandomDense(random, kFloat32, c.inputs[1].shape));
  return c;
}

inline OpCase Norm(SplitMix& random, int scales) {
  const Index shape = RowsShape(random);
  OpCase c = {{RandomDense(random, kFloat32, shape)}, {{"epsilon", FloatAttr(0.01f)}}};
  for (int i = 0; i < scales; ++i) {
    c.inputs.push_back(RandomDense(random, kFloat32, {shape.back()}));
  }
  return c;
}
inline OpCase LayerNorm(SplitMix& random) { return Norm(random, 2); }
inline OpCase RmsNorm(SplitMix& random) { return Norm(random, 1); }
inline OpCase NormGrad(SplitMix& random) {
  OpCase c = Norm(random, 1);
  c.inputs.insert(c.inputs.begin(), RandomDense(random, kFloat32, c.inputs[0].shape));
  return c;
}

inline OpCase Interactions(SplitMix& random) {
  constexpr int64_t kVectors[] = {0, 1, 2, 3, 5, 8, 9, 16, 27, 33, 34, 41};
  const int64_t n = kVectors[random.Below(std::size(kVectors))];
  return {{RandomDense(random, kFloat32, {static_cast<int64_t>(random.Below(4)), n, Size(random)})},
          {}};
}
inline OpCase InteractionsGrad(SplitMix& random) {
  OpCase c = Interactions(random);
  const Index& x = c.inputs[0].shape;
  c.inputs.insert(c.inputs.begin(), RandomDense(random, kFloat32, {x[0], x[1] * (x[1] - 1) / 2}));
  return c;
}

// Leading axes that broadcast, in front of the two of a matrix.
inline OpCase BatchMatmulOfAnyRank(SplitMix& random) {
  if (random.Below(8) == 0) return BatchMatmul(random);
  OpCase c = Product(random, false, Size(random), Size(random), Size(random));
  const Index leading = RandomShape(random, 0, 3);
  for (Dense& input : c.inputs) {
    Index shape = random.Below(2) == 0 ? leading : Shrunk(random, leading);
    shape.insert(shape.end(), input.shape.begin(), input.shape.end());
    input = RandomDense(random, kFloat32, shape);
  }
  return c;
}

// Images, and windows that fit into them.
struct WindowCase {
  Index images, windows;  // windows: count along y and x
  int64_t size[2];
  GraphMaker::Attrs attrs;
};
inline WindowCase RandomWindows(SplitMix& random) {
  WindowCase c;
  const bool same = random.Below(2) == 0;
  std::vector<int64_t> strides;
  c.images = {static_cast<int64_t>(random.Below(4))};
  for (int64_t& size : c.size) {
    size = 1 + static_cast<int64_t>(random.Below(4));
    strides.push_back(1 + static_cast<int64_t>(random.Below(3)));
    const int64_t input = (same ? 1 : size) + static_cast<int64_t>(random.Below(7));
    c.images.push_back(input);
    c.windows.push_back(same ? (input + strides.back() - 1) / strides.back()
                             : (input - size) / strides.back() + 1);
  }
  // Few channels, and as many as a vector has, for which libraries have code of their own.
  c.images.push_back(random.Below(20) == 0
                         ? 16
                         : static_cast<int64_t>(random.Below(4)) + (random.Below(4) == 0 ? 8 : 0));
  c.attrs = {{"strides", IntsAttr(strides)}, {"padding", StringAttr(same ? "same" : "valid")}};
  return c;
}
inline OpCase Conv2d(SplitMix& random, bool gradient) {
  const WindowCase w = RandomWindows(random);
  const int64_t filters = random.Below(12) == 0 ? 16 : Size(random);
  OpCase c = {{RandomDense(random, kFloat32, w.images),
               RandomDense(random, kFloat32, {w.size[0], w.size[1], w.images[3], filters})},
              w.attrs};
  if (!gradient) return c;
  c.inputs.insert(
      c.inputs.begin(),
      RandomDense(random, kFloat32, {w.images[0], w.windows[0], w.windows[1], filters}));
  return c;
}
inline OpCase Pool(SplitMix& random, bool gradient) {
  WindowCase w = RandomWindows(random);
  w.attrs.push_back({"size", IntsAttr({w.size[0], w.size[1]})});
  OpCase c = {{RandomDense(random, kFloat32, w.images)}, w.attrs};
  if (!gradient) return c;
  c.inputs.insert(
      c.inputs.begin(),
      RandomDense(random, kFloat32, {w.images[0], w.windows[0], w.windows[1], w.images[3]}));
  return c;
}
inline OpCase Conv2dForward(SplitMix& random) { return Conv2d(random, false); }
inline OpCase Conv2dGrad(SplitMix& random) { return Conv2d(random, true); }
inline OpCase PoolForward(SplitMix& random) { return Pool(random, false); }
inline OpCase PoolGrad(SplitMix& random) { return Pool(random, true); }

}  // namespace cases

inline const std::map<std::string, CaseMaker>& NeuralCaseMakers() {
  static const auto* const makers = new std::map<std::string, CaseMaker>{
      {"erf", cases::UnaryFloat},
      {"softmax", cases::Rows},
      {"log_softmax", cases::Rows},
      {"logsumexp", cases::Rows},
      {"softmax_cross_entropy", cases::DenseCrossEntropy},
      {"sparse_softmax_cross_entropy", cases::SparseCrossEntropy},
      {"sparse_softmax_cross_entropy_grad", cases::SparseCrossEntropyGrad},
      {"layer_norm", cases::LayerNorm},
      {"layer_norm_grad", cases::NormGrad},
      {"rms_norm", cases::RmsNorm},
      {"rms_norm_grad", cases::NormGrad},
      {"pairwise_interactions", cases::Interactions},
      {"pairwise_interactions_grad", cases::InteractionsGrad},
      {"batch_matmul", cases::BatchMatmulOfAnyRank},
      {"conv2d", cases::Conv2dForward},
      {"conv2d_input_grad", cases::Conv2dGrad},
      {"conv2d_filter_grad", cases::Conv2dGrad},
      {"max_pool2d", cases::PoolForward},
      {"max_pool2d_grad", cases::PoolGrad},
      {"avg_pool2d", cases::PoolForward},
      {"avg_pool2d_grad", cases::PoolGrad},
  };
  return *makers;
}

}  // namespace mu::testing
